"""Names that documents brought go with the last of them, from people's records and from the audit log too."""

import sqlalchemy as sa
from alembic import op

from app.db.policies import APP_ROLE, ENGINE_ROLE

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

# What the audit log tells of entities: subjects, fields and requests of theirs are names and texts from documents.
ENTITY_KINDS = "('entity', 'alias', 'entity_change', 'entity_edit', 'entity_rejection')"
QUOTING = "(before IS NOT NULL OR after IS NOT NULL)"
# What stays of a document in the audit log; all else quotes it.
DOCUMENT_FIELDS = "ARRAY['id', 'workspace_id', 'deleting_at']"
TENANT = "NULLIF(current_setting('app.tenant_id', true), '')::uuid"

# Every text inside, at any depth, and what the parts of a split are called.
TEXTS = """
CREATE FUNCTION texts_in(document jsonb) RETURNS SETOF text
LANGUAGE sql IMMUTABLE STRICT SET search_path = public, pg_temp AS $$
  SELECT lower(t #>> '{}') FROM jsonb_path_query(document, 'strict $.** ? (@.type() == "string")') t
  UNION ALL
  SELECT lower(k) FROM jsonb_path_query(document, 'lax $.**.parts ? (@.type() == "object")') p, jsonb_object_keys(p) k
$$
"""

HAS_RECORDS = f"""
CREATE FUNCTION has_entity_records(place uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT EXISTS (SELECT 1 FROM entity_changes WHERE tenant_id = {TENANT} AND workspace_id = place)
      OR EXISTS (SELECT 1 FROM entity_rejections WHERE tenant_id = {TENANT} AND workspace_id = place)
      OR EXISTS (SELECT 1 FROM entity_aliases
                  WHERE tenant_id = {TENANT} AND workspace_id = place AND source <> 'spelling')
      OR EXISTS (SELECT 1 FROM audit_events WHERE tenant_id = {TENANT} AND workspace_id = place
                                              AND kind IN {ENTITY_KINDS} AND {QUOTING})
$$
"""

# Which of these names any record of the workspace still holds.
RECORDED = f"""
CREATE FUNCTION recorded_entity_names(place uuid, wanted text[]) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT w FROM unnest(wanted) w WHERE lower(w) IN (
    SELECT lower(n) FROM entity_changes c, unnest(c.names) n WHERE c.tenant_id = {TENANT} AND c.workspace_id = place
    UNION ALL
    SELECT t FROM entity_changes c, texts_in(c.request) t WHERE c.tenant_id = {TENANT} AND c.workspace_id = place
    UNION ALL
    SELECT lower(n) FROM entity_undo_records u, unnest(u.sources || u.target) n
     WHERE u.tenant_id = {TENANT} AND u.workspace_id = place
    UNION ALL
    SELECT t FROM entity_undo_records u, texts_in(jsonb_build_array(u.aliases, u.edits, u.merged_edits)) t
     WHERE u.tenant_id = {TENANT} AND u.workspace_id = place
    UNION ALL
    SELECT lower(n) FROM entity_rejections r, unnest(ARRAY[r.one, r.other]) n
     WHERE r.tenant_id = {TENANT} AND r.workspace_id = place
    UNION ALL
    SELECT lower(n) FROM entity_aliases a, unnest(ARRAY[a.alias, a.target]) n
     WHERE a.tenant_id = {TENANT} AND a.workspace_id = place AND a.source <> 'spelling'
    UNION ALL
    SELECT t FROM audit_events e, texts_in(jsonb_build_array(e.subject, e.before, e.after)) t
     WHERE e.tenant_id = {TENANT} AND e.workspace_id = place AND e.kind IN {ENTITY_KINDS} AND {QUOTING})
$$
"""

# Runs after the engine's own deletions: a name that still has chunks is left alone, whoever calls.
FORGET = f"""
CREATE FUNCTION forget_entity_names(place uuid, gone text[], gone_keys bytea[], spoken_of text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  tenant uuid := {TENANT};
  engine text := 'w_' || replace(place::text, '-', '');
  lost text[] := ARRAY(SELECT lower(n) FROM unnest(gone) n WHERE NOT EXISTS (
                          SELECT 1 FROM lightrag_entity_chunks c WHERE c.workspace = engine AND c.id = n));
BEGIN
  DELETE FROM entity_aliases a
   WHERE a.tenant_id = tenant AND a.workspace_id = place AND a.source <> 'manual'
     AND (a.key = ANY (gone_keys) OR a.target_key = ANY (gone_keys));
  DELETE FROM entity_rejections r
   WHERE r.tenant_id = tenant AND r.workspace_id = place AND (lower(r.one) = ANY (lost) OR lower(r.other) = ANY (lost));
  DELETE FROM entity_undo_records u
   WHERE u.tenant_id = tenant AND u.workspace_id = place
     AND EXISTS (SELECT 1 FROM texts_in(jsonb_build_array(to_jsonb(u.sources), u.target, u.aliases, u.edits,
                                                          u.merged_edits)) t WHERE t = ANY (lost));
  UPDATE entity_changes c
     SET names = ARRAY(SELECT n FROM unnest(c.names) WITH ORDINALITY u (n, i) WHERE lower(n) <> ALL (lost) ORDER BY i),
         request = '{{}}', request_key = NULL, error_detail = NULL, forgotten_at = now(),
         error_code = CASE WHEN c.state = 'queued' THEN 'removed_with_documents' ELSE c.error_code END,
         finished_at = coalesce(c.finished_at, now()),
         state = CASE WHEN c.state = 'queued' THEN 'failed' ELSE c.state END
   WHERE c.tenant_id = tenant AND c.workspace_id = place
     AND EXISTS (SELECT 1 FROM texts_in(jsonb_build_array(to_jsonb(c.names), c.request)) t WHERE t = ANY (lost));
  UPDATE audit_events e
     SET subject = CASE WHEN e.kind = 'entity_change' THEN e.subject ELSE '' END,
         before = NULL, after = NULL, redacted_at = now()
   WHERE e.tenant_id = tenant AND e.workspace_id = place AND e.kind IN {ENTITY_KINDS} AND {QUOTING}
     AND EXISTS (SELECT 1 FROM texts_in(jsonb_build_array(e.subject, e.before, e.after)) t WHERE t = ANY (lost));
  -- What several documents say of an entity is one text: nobody can tell which part of it was the removed one's.
  UPDATE audit_events e
     SET before = e.before - 'description', after = e.after - 'description', redacted_at = now()
   WHERE e.tenant_id = tenant AND e.workspace_id = place AND e.kind = 'entity'
     AND e.subject = ANY (spoken_of) AND (e.before ? 'description' OR e.after ? 'description');
END
$$
"""

# Of one document that is gone or going, or of all that a workspace held which is.
REDACT = f"""
CREATE FUNCTION redact_audit_log(place uuid, document uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE audit_events e
     SET before = CASE WHEN e.kind = 'document' THEN (SELECT jsonb_object_agg(f.key, f.value) FROM jsonb_each(e.before) f
                                                       WHERE f.key = ANY ({DOCUMENT_FIELDS})) END,
         after = CASE WHEN e.kind = 'document' THEN (SELECT jsonb_object_agg(f.key, f.value) FROM jsonb_each(e.after) f
                                                      WHERE f.key = ANY ({DOCUMENT_FIELDS})) END,
         subject = CASE WHEN e.kind IN ('document', 'entity_change') THEN e.subject ELSE '' END,
         redacted_at = now()
   WHERE e.tenant_id = {TENANT} AND e.workspace_id = place AND {QUOTING}
     AND CASE WHEN document IS NULL
              THEN e.kind IN ('document', 'entity', 'alias', 'entity_change', 'entity_edit', 'entity_rejection')
                   AND NOT EXISTS (SELECT 1 FROM workspaces w WHERE w.tenant_id = {TENANT} AND w.id = place
                                                                AND w.status <> 'deleting')
              ELSE e.kind = 'document' AND e.subject = document::text
                   AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.tenant_id = {TENANT} AND d.id = document
                                                               AND d.deleting_at IS NULL)
         END
$$
"""

# With their signatures, and who may call them.
FUNCTIONS = (
    (TEXTS, "texts_in(jsonb)", ENGINE_ROLE),
    (HAS_RECORDS, "has_entity_records(uuid)", ENGINE_ROLE),
    (RECORDED, "recorded_entity_names(uuid, text[])", ENGINE_ROLE),
    (FORGET, "forget_entity_names(uuid, text[], bytea[], text[])", ENGINE_ROLE),
    (REDACT, "redact_audit_log(uuid, uuid)", APP_ROLE),
)


def upgrade() -> None:
    op.add_column("entity_changes", sa.Column("forgotten_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("audit_events", sa.Column("redacted_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index(
        "ix_audit_events_quoting",
        "audit_events",
        ["tenant_id", "workspace_id"],
        postgresql_where=sa.text(f"kind IN {ENTITY_KINDS} AND {QUOTING}"),
    )
    for statement, signature, role in FUNCTIONS:
        op.execute(statement)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {role}")


def downgrade() -> None:
    for _, signature, _ in reversed(FUNCTIONS):
        op.execute(f"DROP FUNCTION {signature}")
    op.drop_index("ix_audit_events_quoting", "audit_events")
    op.drop_column("audit_events", "redacted_at")
    op.drop_column("entity_changes", "forgotten_at")
