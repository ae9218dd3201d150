"""Transactional storages for LightRAG: what an operation writes is collected in memory and committed in one transaction."""
