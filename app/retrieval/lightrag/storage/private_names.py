"""Every private name of LightRAG that the transactional storages use, and what for; one test per name watches them.

Upgrading LightRAG starts here: a name that is gone or means something else has to be replaced before anything runs.
"""

# (module, object, what it is used for); the objects' dotted parts are attributes.
PRIVATE_NAMES = (
    ("lightrag", "LightRAG._process_extract_entities", "where a unit learns what was extracted of each chunk"),
    ("lightrag.kg.postgres_impl", "PGVectorStorage._upsert_chunks", "the order of a chunk's values in its template"),
    ("lightrag.kg.postgres_impl", "PGVectorStorage._upsert_entities", "the order of an entity's values"),
    ("lightrag.kg.postgres_impl", "PGVectorStorage._upsert_relationships", "the order of a relation's values"),
    (
        "lightrag.kg.postgres_impl",
        "PGDocStatusStorage._pg_scheduling_record_from_row",
        "the shape of a listed document",
    ),
    ("lightrag.kg.postgres_impl", "PGDocStatusStorage._pg_doc_processing_status_from_row", "the shape of a document"),
    ("lightrag.kg.postgres_impl", "PGDocStatusStorage._format_datetime_with_timezone", "times as LightRAG reads them"),
    ("lightrag.kg.postgres_impl", "_parse_doc_status_datetime", "times as LightRAG writes them"),
    ("lightrag.kg.postgres_impl", "_DOC_STATUS_UPDATABLE_COLUMNS", "which columns of a status may be changed"),
    ("lightrag.kg.postgres_impl", "_DOC_STATUS_JSON_COLUMNS", "which columns of a status are JSON"),
    ("lightrag.kg.postgres_impl", "_DOC_STATUS_DATETIME_COLUMNS", "which columns of a status are times"),
)
