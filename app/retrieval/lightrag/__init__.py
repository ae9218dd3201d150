"""The graph engine: LightRAG on Postgres. The only package that imports `lightrag`."""
