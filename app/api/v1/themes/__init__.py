"""Themes of a corpus over HTTP."""
