"""Enters the transactional storages in LightRAG's registry."""

from lightrag.kg import STORAGE_ENV_REQUIREMENTS, STORAGE_IMPLEMENTATIONS, STORAGES

_PACKAGE = __package__

# Registry kind, name, module.
STORES = (
    ("KV_STORAGE", "UnitKVStorage", "kv_store"),
    ("VECTOR_STORAGE", "UnitVectorStorage", "vector_store"),
    ("GRAPH_STORAGE", "UnitGraphStorage", "graph_store"),
    ("DOC_STATUS_STORAGE", "UnitDocStatusStorage", "doc_status_store"),
)


def register_unit_stores() -> None:
    """Make the four storages known by name. They need no `POSTGRES_*` variables: the pool is ours."""
    for kind, name, module in STORES:
        STORAGES[name] = f"{_PACKAGE}.{module}"
        known = STORAGE_IMPLEMENTATIONS[kind]["implementations"]
        if name not in known:
            known.append(name)
        STORAGE_ENV_REQUIREMENTS[name] = []
