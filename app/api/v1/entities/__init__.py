"""Entities of the graph over HTTP."""
