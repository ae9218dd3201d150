"""The transitions that every document makes, as SQL; `states.py` says when they are made.

They are written out: building them from expressions takes the client longer than running them takes the database.
"""

from typing import Any

from sqlalchemy import text

from app.db.models import IndexState

_CHANGED = "RETURNING s.workspace_id, s.state, s.attempts, s.cleanliness, s.stage_ms"
_FREE = """
      s.tenant_id = :tenant_id AND s.version_id = :version_id AND s.engine = :engine
  -- What is queued of a suspended tenant waits, uncounted.
  AND EXISTS (SELECT 1 FROM tenants t WHERE t.id = s.tenant_id AND t.status = 'active')
  AND (s.state = 'queued' OR (s.state = 'running' AND s.lease_expires_at < clock_timestamp()))
  AND (s.engine <> 'graph' OR EXISTS (SELECT 1 FROM index_states l
         WHERE l.tenant_id = s.tenant_id AND l.version_id = s.version_id AND l.engine = 'lazy' AND l.state = 'ready'))
"""
_MINE = """
  s.tenant_id = :tenant_id AND s.version_id = :version_id AND s.engine = :engine AND s.state = 'running'
  AND s.lease_owner = :owner
"""
_CHUNKS = "SELECT count(*) FROM chunks c WHERE c.tenant_id = s.tenant_id AND c.version_id = s.version_id"


def _changing(statement: str) -> Any:
    """An UPDATE that gives the row as it left it."""
    return text(f"{statement} {_CHANGED}").columns(
        IndexState.workspace_id, IndexState.state, IndexState.attempts, IndexState.cleanliness, IndexState.stage_ms
    )


CLAIM = _changing(f"""
UPDATE index_states s
   SET state = 'running', stage = :stage, attempts = s.attempts + 1, lease_owner = :owner,
       lease_expires_at = clock_timestamp() + make_interval(secs => :lease_seconds), finished_at = NULL,
       started_at = coalesce(s.started_at, clock_timestamp()), changed_at = clock_timestamp(),
       chunks_done = CASE WHEN s.engine = 'graph' THEN ({_CHUNKS} AND c.state = 'extracted') ELSE s.chunks_done END,
       chunks_total = CASE WHEN s.engine = 'graph' THEN ({_CHUNKS}) ELSE s.chunks_total END
 WHERE {_FREE} AND s.attempts < :max_attempts
""")  # noqa: S608 - put together from constants of ours
GIVE_UP = _changing(f"""
UPDATE index_states s
   SET state = 'failed', stage = 'failed', error_code = 'too_many_attempts',
       error_detail = coalesce(s.error_detail, format('gave up after %s attempts', CAST(:max_attempts AS int))),
       lease_expires_at = NULL, finished_at = clock_timestamp(), changed_at = clock_timestamp()
 WHERE {_FREE} AND s.attempts >= :max_attempts
""")  # noqa: S608 - put together from constants of ours
STEP = _changing(f"""
UPDATE index_states s
   SET stage = coalesce(CAST(:stage AS text), s.stage), cleanliness = coalesce(CAST(:cleanliness AS text), s.cleanliness),
       chunks_done = coalesce(CAST(:done AS int), s.chunks_done),
       chunks_total = coalesce(CAST(:total AS int), s.chunks_total),
       stage_ms = s.stage_ms || CAST(:stage_ms AS jsonb), changed_at = clock_timestamp()
 WHERE {_MINE}
""")  # noqa: S608 - put together from constants of ours
FINISH = f"""
UPDATE index_states s
   SET state = :state, cleanliness = 'clean', stage = 'done', error_code = :code, error_detail = :detail,
       lease_expires_at = NULL, finished_at = clock_timestamp(), changed_at = clock_timestamp(),
       stage_ms = s.stage_ms || CAST(:stage_ms AS jsonb) || CASE WHEN CAST(:since_changed AS text) IS NULL THEN '{{}}'
         ELSE jsonb_build_object(CAST(:since_changed AS text),
                                 round(extract(epoch FROM clock_timestamp() - s.changed_at) * 1000, 1)) END
 WHERE {_MINE}
"""  # noqa: S608 - put together from constants of ours


FINISHING = _changing(FINISH)
