"""Themes of a workspace: reading them, and having them made anew."""
