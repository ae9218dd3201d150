"""Graphs in Apache AGE: one schema and one role a workspace, written by LightRAG's own storage, read by openCypher."""
