"""Functions that give a large workspace a partition of the vector tables, with an ANN index of its own.

The tables come with embedding profiles (`app/db/vector_tables.py`); no runtime role may run DDL but through these.
"""

from alembic import op

from app.db.policies import APP_ROLE

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Ids only: workspaces with more rows than `min_rows` in a shared partition, and gone ones that left a partition behind.
VECTOR_PARTITION_WORK = """
CREATE FUNCTION vector_partition_work(min_rows int) RETURNS TABLE (table_name text, workspace_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  parent record;
BEGIN
  FOR parent IN
    SELECT c.oid, c.relname::text AS name, k.attname AS key, p.partdefid::regclass AS rest,
           CASE k.attname WHEN 'workspace' THEN '''w_'' || replace(w.id::text, ''-'', '''')' ELSE 'w.id' END AS name_of,
           v.atttypmod AS dimension
      FROM pg_partitioned_table p
      JOIN pg_class c ON c.oid = p.partrelid AND c.relnamespace = 'public'::regnamespace
      JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = p.partattrs[0]
      JOIN pg_attribute v ON v.attrelid = c.oid AND v.atttypid = 'vector'::regtype
     ORDER BY c.relname
  LOOP
    -- pgvector has no HNSW index for longer vectors: a partition of one's own would gain nothing.
    IF parent.dimension <= 2000 THEN
      RETURN QUERY EXECUTE format(
        'SELECT %L::text, w.id FROM (SELECT %I AS key FROM %s GROUP BY 1 HAVING count(*) > $1) crowded
           JOIN workspaces w ON %s = crowded.key WHERE w.status = ''active''',
        parent.name, parent.key, parent.rest, parent.name_of) USING min_rows;
    END IF;
    RETURN QUERY
      SELECT parent.name, left_behind.id
        FROM (SELECT (regexp_match(pg_get_expr(c.relpartbound, c.oid), '''(w_)?([0-9a-f-]+)'''))[2]::uuid AS id
                FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
               WHERE i.inhparent = parent.oid AND i.inhrelid <> parent.rest) left_behind
       WHERE NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.id = left_behind.id);
  END LOOP;
END
$$
"""

# The copy and its index are made beside the running table. Only then all writers are held up, for as long as it takes
# to bring the copy up to date, to delete the originals and to read the shared partition once (which ATTACH does).
# The parent is locked before its partitions, as statements do, and `passages` before both, as ingestion does. Whoever
# waits for the parent plans anew afterwards; a lock on partitions alone would let it write to the wrong one.
# Waiting for the first locks ends before Postgres looks for deadlocks (1 s), so that this gives way and no writer is
# sacrificed; waiting for a partition, which only autovacuum can hold then, is long enough for that to be called off.
# The index is built by one process: helpers would need shared memory that containers often lack, and nobody waits for it.
TEND_VECTOR_PARTITION = """
CREATE FUNCTION tend_vector_partition(table_name text, wanted uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET lock_timeout = '900ms'
SET maintenance_work_mem = '256MB' SET max_parallel_maintenance_workers = 0
SET enable_nestloop = off AS $$
DECLARE
  parent record;
  policy record;
  own text;
  own_number int;
BEGIN
  SELECT c.oid::regclass AS name, p.partdefid::regclass AS rest, v.attname AS vectors, v.atttypmod AS dimension,
         k.attname AS key, CASE k.attname WHEN 'workspace' THEN 'id' ELSE 'passage_id' END AS id,
         CASE k.attname WHEN 'workspace' THEN 'w_' || replace(wanted::text, '-', '') ELSE wanted::text END AS value
    INTO parent
    FROM pg_partitioned_table p
    JOIN pg_class c ON c.oid = p.partrelid AND c.relname = table_name AND c.relnamespace = 'public'::regnamespace
    JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = p.partattrs[0]
    JOIN pg_attribute v ON v.attrelid = c.oid AND v.atttypid = 'vector'::regtype;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no vector table %', table_name USING ERRCODE = 'undefined_table';
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtextextended('tend ' || table_name, 0)) THEN
    RETURN 'busy';
  END IF;
  SELECT i.inhrelid::regclass INTO own FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
   WHERE i.inhparent = parent.name AND pg_get_expr(c.relpartbound, c.oid) = format('FOR VALUES IN (%L)', parent.value);
  SELECT number INTO own_number FROM workspaces WHERE id = wanted;
  IF NOT FOUND AND own IS NOT NULL THEN
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', parent.name);
    SET LOCAL lock_timeout = '3s';
    EXECUTE format('DROP TABLE %s', own);
    RETURN 'dropped';
  END IF;
  IF own_number IS NULL OR own IS NOT NULL OR parent.dimension > 2000 THEN
    RETURN 'nothing';
  END IF;

  own := format('%I', table_name || '_w' || own_number);
  EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING ALL) WITH (toast_tuple_target = 8160)', own, parent.name);
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', own);
  FOR policy IN SELECT * FROM pg_policies WHERE schemaname = 'public' AND tablename = table_name LOOP
    EXECUTE format('CREATE POLICY %I ON %s TO %s USING (%s) WITH CHECK (%s)', policy.policyname, own,
                   array_to_string(policy.roles, ', '), policy.qual, policy.with_check);
  END LOOP;
  FOR pass IN 1..3 LOOP
    IF pass = 3 THEN
      IF parent.key = 'workspace_id' THEN
        LOCK TABLE passages IN SHARE ROW EXCLUSIVE MODE;
      END IF;
      EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', parent.name);
      SET LOCAL lock_timeout = '3s';
      EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', parent.rest);
    END IF;
    -- What has changed or gone since the pass before, and then what is new. Statistics that do not know the workspace yet
    -- make loops within loops look cheap: 12 s under the locks for 5,000 rows, 0.1 s without.
    EXECUTE format('DELETE FROM %s o WHERE NOT EXISTS (SELECT 1 FROM %s r WHERE r.%I = %L AND r.%I = o.%I AND r *= o)',
                   own, parent.rest, parent.key, parent.value, parent.id, parent.id);
    EXECUTE format('INSERT INTO %s SELECT r.* FROM %s r WHERE r.%I = %L
                       AND NOT EXISTS (SELECT 1 FROM %s o WHERE o.%I = r.%I)',
                   own, parent.rest, parent.key, parent.value, own, parent.id, parent.id);
    IF pass = 1 THEN
      EXECUTE format('CREATE INDEX ON %s USING hnsw (%I vector_cosine_ops) WITH (m = 16, ef_construction = 64)',
                     own, parent.vectors);
      EXECUTE format('ANALYZE %s', own);
    END IF;
  END LOOP;
  EXECUTE format('DELETE FROM %s WHERE %I = %L', parent.rest, parent.key, parent.value);
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%L)', parent.name, own, parent.value);
  RETURN 'split';
END
$$
"""

FUNCTIONS = {
    "vector_partition_work(int)": VECTOR_PARTITION_WORK,
    "tend_vector_partition(text, uuid)": TEND_VECTOR_PARTITION,
}


def upgrade() -> None:
    for signature, definition in FUNCTIONS.items():
        op.execute(definition)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {APP_ROLE}")


def downgrade() -> None:
    for signature in reversed(FUNCTIONS):
        op.execute(f"DROP FUNCTION {signature}")
