"""Drop the indexes of the engine's tables that repeat their primary keys, which every write pays for and no statement needs.

LightRAG makes one by `id` and one by `(workspace, id)` beside the primary key `(workspace, id)`. All of its statements, and the fence,
name the workspace.
"""

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

TABLES = (
    "lightrag_doc_full", "lightrag_doc_chunks", "lightrag_llm_cache", "lightrag_doc_status", "lightrag_full_entities",
    "lightrag_full_relations", "lightrag_entity_chunks", "lightrag_relation_chunks",
)  # fmt: skip

# The tables of embedding profiles have names of their own. Those of partitions go with their table's.
DROP_OF_VECTORS = """
DO $$
DECLARE
  repeated record;
BEGIN
  FOR repeated IN
    SELECT x.indexrelid::regclass AS name
      FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid AND c.relkind = 'p'
     WHERE c.relnamespace = 'public'::regnamespace AND c.relname LIKE 'lightrag\\_vdb\\_%' AND NOT x.indisunique
       AND pg_get_indexdef(x.indexrelid) ~ 'USING btree \\((workspace, )?id\\)$'
  LOOP
    EXECUTE format('DROP INDEX %s', repeated.name);
  END LOOP;
END
$$
"""
# By LightRAG's rule for the names of indexes.
CREATE_OF_VECTORS = """
DO $$
DECLARE
  parent record;
BEGIN
  FOR parent IN
    SELECT c.oid::regclass AS name, c.relname::text AS label, columns.ending, columns.list
      FROM pg_class c CROSS JOIN (VALUES ('id', 'id'), ('workspace_id', 'workspace, id')) columns (ending, list)
     WHERE c.relkind = 'p' AND c.relnamespace = 'public'::regnamespace AND c.relname LIKE 'lightrag\\_vdb\\_%'
  LOOP
    EXECUTE format('CREATE INDEX %I ON %s (%s)',
      CASE WHEN length(parent.label) + length(parent.ending) + 5 <= 63 THEN 'idx_' || parent.label || '_' || parent.ending
           ELSE 'idx_' || left(md5(parent.label), 12) || '_' || parent.ending END, parent.name, parent.list);
  END LOOP;
END
$$
"""


def upgrade() -> None:
    for table in TABLES:
        op.execute(f"DROP INDEX idx_{table}_id")
        op.execute(f"DROP INDEX idx_{table}_workspace_id")
    op.execute(DROP_OF_VECTORS)


def downgrade() -> None:
    op.execute(CREATE_OF_VECTORS)
    for table in TABLES:
        op.execute(f"CREATE INDEX idx_{table}_id ON {table} (id)")
        op.execute(f"CREATE INDEX idx_{table}_workspace_id ON {table} (workspace, id)")
