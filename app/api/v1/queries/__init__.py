"""Queries over HTTP."""
