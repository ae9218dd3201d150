"""Trellis beside LightRAG: ingestion and queries, measured in one run."""
