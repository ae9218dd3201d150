"""Workspaces: a corpus of a tenant, how it is indexed, and which models it uses."""
