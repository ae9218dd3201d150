"""Entities of a workspace's graph: browsing them and merging those that are one thing."""
