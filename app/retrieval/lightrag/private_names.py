"""Every private name of LightRAG that is used, and what for; one test per name watches them.

Upgrading LightRAG starts here: a name that is gone or means something else has to be replaced before anything runs.
"""

_POSTGRES = "lightrag.kg.postgres_impl"
_SHARED = "lightrag.kg.shared_storage"

# (module, name, what it is used for); a name that exists on instances only follows the class that sets it.
PRIVATE_NAMES = (
    (
        "lightrag",
        "LightRAG._build_global_config",
        "the settings its own functions want, for extraction, rebuild and search",
    ),
    ("lightrag", "LightRAG._insert_done", "what makes its buffers durable after a write of ours through its storages"),
    (
        "lightrag",
        "LightRAG._process_extract_entities",
        "where mentions are taken from what was extracted of each chunk",
    ),
    ("lightrag", "LightRAG._role_llm_states", "model functions without its queues, which outlive calls and instances"),
    (
        "lightrag.operate",
        "_rebuild_from_extraction_result",
        "its parser of raw answers, to read them under other names",
    ),
    (_POSTGRES, "ClientManager._instances", "where its storages look for the process's pool, which is ours"),
    (_POSTGRES, "ClientManager._lock", "bound to the loop that first waited on it, so it is made anew"),
    (_POSTGRES, "PostgreSQLDB._before_sleep", "replaced: an error must not close the pool under other tenants"),
    (_POSTGRES, "PostgreSQLDB._create_vector_index", "replaced: no DDL at run time"),
    (_POSTGRES, "PostgreSQLDB._ensure_pool", "the pool, before a transaction of ours"),
    (_POSTGRES, "PostgreSQLDB._reset_pool", "closes the pool"),
    (_POSTGRES, "PostgreSQLDB._run_with_retry", "statements of ours, retried like its own"),
    (_POSTGRES, "PostgreSQLDB._transient_exceptions", "what counts as a lost connection"),
    (_POSTGRES, "PGVectorStorage._upsert_chunks", "the order of a chunk's values in its template"),
    (_POSTGRES, "PGVectorStorage._upsert_entities", "the order of an entity's values"),
    (_POSTGRES, "PGVectorStorage._upsert_relationships", "the order of a relation's values"),
    (_POSTGRES, "PGVectorStorage._flush_lock", "the lock of its reads"),
    (_POSTGRES, "PGDocStatusStorage._pg_scheduling_record_from_row", "the shape of a listed document"),
    (_POSTGRES, "PGDocStatusStorage._pg_doc_processing_status_from_row", "the shape of a document"),
    (_POSTGRES, "PGDocStatusStorage._format_datetime_with_timezone", "times as LightRAG reads them"),
    (_POSTGRES, "_parse_doc_status_datetime", "times as LightRAG writes them"),
    (_POSTGRES, "_DOC_STATUS_UPDATABLE_COLUMNS", "which columns of a status may be changed"),
    (_POSTGRES, "_DOC_STATUS_JSON_COLUMNS", "which columns of a status are JSON"),
    (_POSTGRES, "_DOC_STATUS_DATETIME_COLUMNS", "which columns of a status are times"),
    (_SHARED, "_shared_dicts", "emptied of a workspace when its last instance is closed"),
    (_SHARED, "_namespace_data_cache", "emptied like it"),
    (_SHARED, "_pipeline_ingress_local", "emptied like it"),
    (_SHARED, "_scan_job_store_local", "emptied like it"),
    (_SHARED, "_init_flags", "emptied like it"),
    (_SHARED, "_update_flags", "emptied like it"),
)
