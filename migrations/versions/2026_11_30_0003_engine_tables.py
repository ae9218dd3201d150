"""The graph engine's own tables, as LightRAG 1.5.7 makes them, fenced by workspace.

LightRAG would create them at run time, with rights that no serving role should have and with a lock on all tenants'
tables. A test builds a second database with LightRAG's own statements and compares the catalogs.
"""

from alembic import op

from app.db.policies import ENGINE_ROLE, fence_by_workspace

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STAMPS = """
    create_time timestamp(0) DEFAULT CURRENT_TIMESTAMP,
    update_time timestamp(0) DEFAULT CURRENT_TIMESTAMP"""

KEY_VALUE_TABLES = {
    "lightrag_doc_full": f"""
    id varchar(255), workspace varchar(255), doc_name varchar(1024), content text, meta jsonb, sidecar_location text,
    parse_format varchar(32) DEFAULT 'raw', content_hash text, process_options text,
    chunk_options jsonb DEFAULT '{{}}'::jsonb, parse_engine text, {STAMPS}""",
    "lightrag_doc_chunks": f"""
    id varchar(255), workspace varchar(255), full_doc_id varchar(256), chunk_order_index integer, tokens integer,
    content text, file_path text, llm_cache_list jsonb DEFAULT '[]'::jsonb, heading jsonb DEFAULT '{{}}'::jsonb,
    sidecar jsonb DEFAULT '{{}}'::jsonb, {STAMPS}""",
    "lightrag_llm_cache": """
    workspace varchar(255), id varchar(255), original_prompt text, return_value text, chunk_id varchar(255),
    cache_type varchar(32), queryparam jsonb,
    create_time timestamp DEFAULT CURRENT_TIMESTAMP, update_time timestamp DEFAULT CURRENT_TIMESTAMP""",
    "lightrag_doc_status": """
    workspace varchar(255), id varchar(255), content_summary varchar(255), content_length integer,
    chunks_count integer, status varchar(64), file_path text, chunks_list jsonb DEFAULT '[]'::jsonb,
    track_id varchar(255), metadata jsonb DEFAULT '{}'::jsonb, error_msg text, content_hash text,
    created_at timestamp DEFAULT CURRENT_TIMESTAMP, updated_at timestamp DEFAULT CURRENT_TIMESTAMP""",
    "lightrag_full_entities": f"""
    id varchar(255), workspace varchar(255), entity_names jsonb, count integer, {STAMPS}""",
    "lightrag_full_relations": f"""
    id varchar(255), workspace varchar(255), relation_pairs jsonb, count integer, {STAMPS}""",
    "lightrag_entity_chunks": f"""
    id varchar(512), workspace varchar(255), chunk_ids jsonb, count integer, {STAMPS}""",
    "lightrag_relation_chunks": f"""
    id varchar(512), workspace varchar(255), chunk_ids jsonb, count integer, {STAMPS}""",
}

GRAPH_TABLES = (
    """
CREATE TABLE lightrag_graph_nodes (
    workspace text NOT NULL,
    namespace text NOT NULL DEFAULT 'chunk_entity_relation',
    id text NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace, namespace, id)
)""",
    """
CREATE TABLE lightrag_graph_edges (
    workspace text NOT NULL,
    namespace text NOT NULL DEFAULT 'chunk_entity_relation',
    src_id text NOT NULL,
    tgt_id text NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace, namespace, src_id, tgt_id),
    CONSTRAINT fk_lightrag_graph_edges_src FOREIGN KEY (workspace, namespace, src_id)
        REFERENCES lightrag_graph_nodes (workspace, namespace, id) ON DELETE CASCADE,
    CONSTRAINT fk_lightrag_graph_edges_tgt FOREIGN KEY (workspace, namespace, tgt_id)
        REFERENCES lightrag_graph_nodes (workspace, namespace, id) ON DELETE CASCADE
)""",
    "CREATE INDEX idx_lightrag_graph_edges_namespace_tgt ON lightrag_graph_edges (workspace, namespace, tgt_id)",
    "CREATE INDEX idx_lightrag_graph_edges_noncanonical ON lightrag_graph_edges (workspace, namespace)"
    ' WHERE src_id COLLATE "C" > tgt_id COLLATE "C"',
)

STATUS_INDEXES = {
    "idx_lightrag_doc_status_track_id": "(track_id)",
    "idx_lightrag_doc_status_workspace_content_hash": (
        "(workspace, content_hash) WHERE content_hash IS NOT NULL AND content_hash <> ''"
    ),
    "idx_lightrag_doc_status_workspace_created_at": "(workspace, created_at DESC)",
    "idx_lightrag_doc_status_workspace_file_path": "(workspace, file_path)",
    "idx_lightrag_doc_status_workspace_status_created_at": "(workspace, status, created_at DESC)",
    "idx_lightrag_doc_status_workspace_status_updated_at": "(workspace, status, updated_at DESC)",
    "idx_lightrag_doc_status_workspace_updated_at": "(workspace, updated_at DESC)",
    "idx_lightrag_doc_status_ws_status_created_nf_id": "(workspace, status, created_at NULLS FIRST, id)",
}

# Beyond LightRAG's own: what removing a version and browsing entities look up.
OUR_INDEXES = (
    "CREATE INDEX ix_lightrag_doc_chunks_full_doc_id ON lightrag_doc_chunks (workspace, full_doc_id)",
    "CREATE INDEX ix_lightrag_llm_cache_chunk_id ON lightrag_llm_cache (workspace, chunk_id)",
)


def upgrade() -> None:
    for table, columns in KEY_VALUE_TABLES.items():
        op.execute(f"CREATE TABLE {table} ({columns}, CONSTRAINT {table}_pk PRIMARY KEY (workspace, id))")
        op.execute(f"CREATE INDEX idx_{table}_id ON {table} (id)")
        op.execute(f"CREATE INDEX idx_{table}_workspace_id ON {table} (workspace, id)")
    for name, definition in STATUS_INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON lightrag_doc_status {definition}")
    for statement in (*GRAPH_TABLES, *OUR_INDEXES):
        op.execute(statement)
    for table in (*KEY_VALUE_TABLES, "lightrag_graph_nodes", "lightrag_graph_edges"):
        for statement in fence_by_workspace(table):
            op.execute(statement)
        # The app role gets nothing: whatever it needs of the graph it asks the engine for.
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {ENGINE_ROLE}")
    # Whether a document is being deleted belongs to the rule of which versions may be believed.
    op.execute(f"GRANT SELECT (tenant_id, id, deleting_at) ON documents TO {ENGINE_ROLE}")
    # The live pointer moves with the graph, and forward only.
    op.execute(f"GRANT SELECT (tenant_id, id, ordinal) ON versions TO {ENGINE_ROLE}")


def downgrade() -> None:
    op.execute(f"REVOKE SELECT (tenant_id, id, ordinal) ON versions FROM {ENGINE_ROLE}")
    op.execute(f"REVOKE SELECT (tenant_id, id, deleting_at) ON documents FROM {ENGINE_ROLE}")
    for table in ("lightrag_graph_edges", "lightrag_graph_nodes", *reversed(KEY_VALUE_TABLES)):
        op.execute(f"DROP TABLE {table}")
