"""The statements on leases, of workspaces and of claims."""

from sqlalchemy import text

# A holder whose lease ran out may be in the middle of a statement that it was allowed to begin (`hold_lease`): its end comes first.
TAKE = text("""
UPDATE workspace_leases
   SET owner = :owner, epoch = epoch + 1, expires_at = clock_timestamp() + make_interval(secs => :lease_seconds)
 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id AND (owner IS NULL OR expires_at < clock_timestamp())
   AND pg_try_advisory_xact_lock(hashtextextended('hold ' || workspace_id::text, 0))
RETURNING epoch
""")
# An owner is of one holding. The epoch has moved on with each write that the holder made itself.
RELEASE = text("""
UPDATE workspace_leases SET owner = NULL, expires_at = NULL
 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id AND owner = :owner
""")
AWAIT_RELEASE = text("""
SELECT 1 FROM workspace_leases WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id FOR SHARE
""")
CONFIRM = text("""
UPDATE workspace_leases SET owner = owner
 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id AND owner = :owner RETURNING epoch
""")

# For as long as the connection lives: a move of a graph takes longer than a transaction may.
BEGIN_MOVING = text(
    "SELECT pg_try_advisory_lock(hashtextextended('move ' || CAST(CAST(:workspace_id AS uuid) AS text), 0))"
)
END_MOVING = text(
    "SELECT pg_advisory_unlock(hashtextextended('move ' || CAST(CAST(:workspace_id AS uuid) AS text), 0))"
)

# Who is held is read from the snapshot; a row that is locked is passed over, for only the holder's own last transaction
# locks it for long, and what takes it away is seen by the next beat. Naming the keys keeps a beat to the rows it is about.
HELD_CLAIMS = text("""
WITH asked AS (
  SELECT * FROM unnest(CAST(:versions AS uuid[]), CAST(:engines AS text[]), CAST(:owners AS text[]))
             AS a (version_id, engine, owner)
), free AS (
  SELECT s.version_id, s.engine
    FROM asked a JOIN index_states s ON s.tenant_id = :tenant_id AND s.version_id = a.version_id AND s.engine = a.engine
   WHERE s.lease_owner = a.owner AND s.state = 'running'
     FOR NO KEY UPDATE OF s SKIP LOCKED
), renewed AS (
  UPDATE index_states s SET lease_expires_at = clock_timestamp() + make_interval(secs => :seconds)
    FROM free f WHERE s.tenant_id = :tenant_id AND s.version_id = f.version_id AND s.engine = f.engine
)
SELECT a.owner
  FROM asked a JOIN index_states s ON s.tenant_id = :tenant_id AND s.version_id = a.version_id AND s.engine = a.engine
 WHERE s.lease_owner = a.owner
""")
HELD_LEASES = text("""
WITH asked AS (
  SELECT * FROM unnest(CAST(:workspaces AS uuid[]), CAST(:owners AS text[])) AS a (workspace_id, owner)
), free AS (
  SELECT l.workspace_id FROM asked a JOIN workspace_leases l ON l.tenant_id = :tenant_id AND l.workspace_id = a.workspace_id
   WHERE l.owner = a.owner
     FOR NO KEY UPDATE OF l SKIP LOCKED
), renewed AS (
  UPDATE workspace_leases l SET expires_at = clock_timestamp() + make_interval(secs => :seconds)
    FROM free f WHERE l.tenant_id = :tenant_id AND l.workspace_id = f.workspace_id
)
SELECT a.owner FROM asked a JOIN workspace_leases l ON l.tenant_id = :tenant_id AND l.workspace_id = a.workspace_id
 WHERE l.owner = a.owner
""")
