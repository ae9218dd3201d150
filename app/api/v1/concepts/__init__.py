"""The concept graph over HTTP."""
