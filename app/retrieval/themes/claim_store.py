"""Who builds a workspace's map of themes, and the moment in which a new one takes the place of the old. SQL only."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.db.session import TenantSession
from app.retrieval.contract import WorkspaceRef
from app.retrieval.store.theme_placing import READY_MAP, SOLE_LOCK, placing

_DROP_EXPIRED = text("""
DELETE FROM theme_maps
 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id AND state = 'building' AND building_until < now()
""")

_CLAIM = text("""
INSERT INTO theme_maps (tenant_id, id, workspace_id, state, building_until)
SELECT w.tenant_id, gen_random_uuid(), w.id, 'building', now() + make_interval(secs => :seconds)
  FROM workspaces w WHERE w.tenant_id = :tenant_id AND w.id = :workspace_id AND w.status = 'active'
ON CONFLICT (tenant_id, workspace_id, state) DO NOTHING
RETURNING id
""")

_EXTEND = text("""
UPDATE theme_maps SET building_until = now() + make_interval(secs => :seconds)
 WHERE tenant_id = :tenant_id AND id = :map_id AND state = 'building'
""")

_GIVE_UP = text("DELETE FROM theme_maps WHERE tenant_id = :tenant_id AND id = :map_id AND state = 'building'")

# Holds whoever would take the claim over, and the workspace's deletion, until the end of the transaction.
_HOLD = text("""
SELECT m.id FROM theme_maps m JOIN workspaces w ON w.tenant_id = m.tenant_id AND w.id = m.workspace_id
 WHERE m.tenant_id = :tenant_id AND m.id = :map_id AND m.state = 'building' AND w.status = 'active'
   FOR UPDATE OF m FOR KEY SHARE OF w
""")

_LOCK = text(SOLE_LOCK)
_DROP_OLD = text("""
DELETE FROM theme_maps WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id AND state = 'ready'
""")

_PUT_LIVE = text("""
UPDATE theme_maps
   SET state = 'ready', building_until = NULL, finished_at = clock_timestamp(), corpus_version = :corpus_version,
       levels = :levels, base_level = :base_level, leaves = :leaves, passages = :passages,
       used_passages = :used_passages, assigned = :assigned, is_sampled = :is_sampled, concepts = :concepts,
       edges = :edges, empty_reason = :empty_reason, milliseconds = :milliseconds, parameters = CAST(:parameters AS jsonb)
 WHERE tenant_id = :tenant_id AND id = :map_id
""")

# What was removed since the map's passages were read: the remover saw the map before this one.
_DROP_GONE_PASSAGES = text("""
DELETE FROM theme_passages t
 WHERE t.tenant_id = :tenant_id AND t.map_id = :map_id
   AND NOT EXISTS (SELECT 1 FROM lazy_passages l WHERE l.workspace = :workspace AND l.passage_id = t.passage_id)
""")
_DROP_GONE_CONCEPTS = text("""
DELETE FROM theme_concepts c
 WHERE c.tenant_id = :tenant_id AND c.map_id = :map_id
   AND NOT EXISTS (SELECT 1 FROM concept_postings p WHERE p.workspace = :workspace AND p.key = c.key)
""")
_PLACE_NEW = text(
    placing("""passages q
              WHERE q.tenant_id = :tenant_id
                AND q.version_id IN (SELECT v.version_id FROM lazy_versions v
                                      WHERE v.tenant_id = :tenant_id AND v.workspace = :workspace
                                        AND NOT EXISTS (SELECT 1 FROM unnest(CAST(:read AS uuid[])) AS read (id)
                                                         WHERE read.id = v.version_id))""")
)

# A claim that is not given back in order leaves its try behind.
_TRY = text("""
UPDATE corpus_versions SET themes_tries = themes_tries + 1
 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id
""")
_TRIED = text(
    "UPDATE corpus_versions SET themes_tries = 0 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id"
)

# A wish that came since is not met.
_LOOKED_AT = text("""
UPDATE corpus_versions
   SET themes_version = greatest(themes_version, :version), themes_tries = 0,
       are_themes_asked = are_themes_asked AND themes_asked_at IS DISTINCT FROM CAST(:asked_at AS timestamptz)
 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id
""")

_ASK = text("""
UPDATE corpus_versions SET are_themes_asked = true, themes_asked_at = now(), themes_sent_at = now(), themes_tries = 0
 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id
RETURNING workspace_id
""")

_STATE = text(f"""
SELECT w.number, c.version, c.themes_version, c.are_themes_asked, c.themes_tries, c.themes_asked_at AS asked_at, ready.id AS map_id,
       (SELECT coalesce(sum(l.passages), 0)::int FROM lazy_versions l
         WHERE l.tenant_id = w.tenant_id AND l.workspace = w.number) AS passages
  FROM workspaces w
  JOIN corpus_versions c ON c.tenant_id = w.tenant_id AND c.workspace_id = w.id
  LEFT JOIN ({READY_MAP}) ready ON true
 WHERE w.tenant_id = :tenant_id AND w.id = :workspace_id AND w.status = 'active'
""")  # noqa: S608


async def find_state(session: TenantSession, workspace_id: UUID) -> Any | None:
    """Of an active workspace its number, corpus version and the one that themes were looked at, indexed passages, whether
    and when somebody asked for themes, how many builds were killed, and the map it has; None if it is gone or going."""
    parameters = {"tenant_id": session.tenant_id, "workspace_id": workspace_id}
    return (await session.execute(_STATE, parameters)).one_or_none()


async def ask(session: TenantSession, workspace_id: UUID) -> None:
    """Note that somebody wants the themes built again."""
    await session.execute(_ASK, {"tenant_id": session.tenant_id, "workspace_id": workspace_id})


async def claim(session: TenantSession, ref: WorkspaceRef, seconds: float) -> UUID | None:
    """The id of a map to build; None if another worker is at it, or the workspace is going. A claim that its holder let
    expire, as one that was killed does, is swept away first."""
    parameters = {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id}
    await session.execute(_DROP_EXPIRED, parameters)
    found: UUID | None = await session.scalar(_CLAIM, parameters | {"seconds": seconds})
    if found is not None:
        await session.execute(_TRY, parameters)
    return found


async def extend(session: TenantSession, map_id: UUID, seconds: float) -> None:
    """Keep the claim for so long from now; a no-op if it is lost."""
    await session.execute(_EXTEND, {"tenant_id": session.tenant_id, "map_id": map_id, "seconds": seconds})


async def give_up(session: TenantSession, ref: WorkspaceRef, map_id: UUID) -> None:
    """Take the claim back, for another worker."""
    await session.execute(_GIVE_UP, {"tenant_id": session.tenant_id, "map_id": map_id})
    await session.execute(_TRIED, {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id})


async def hold(session: TenantSession, map_id: UUID) -> bool:
    """Whether the claim still is ours and its workspace there; if so, both stay until the end of the transaction."""
    return await session.scalar(_HOLD, {"tenant_id": session.tenant_id, "map_id": map_id}) is not None


async def put_live(
    session: TenantSession, ref: WorkspaceRef, map_id: UUID, facts: dict[str, Any], read: list[UUID]
) -> None:
    """Put a written map in the place of the one before, brought up to what came and went since its passages were `read`,
    by version. Writers of documents wait from here to the end of the transaction."""
    of = {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id, "workspace": ref.number, "map_id": map_id}
    await session.execute(_LOCK, {"workspace": ref.number})
    await session.execute(_DROP_OLD, of)
    await session.execute(_PUT_LIVE, of | facts | {"parameters": json.dumps(facts["parameters"])})
    await session.execute(_DROP_GONE_PASSAGES, of)
    await session.execute(_DROP_GONE_CONCEPTS, of)
    await session.execute(_PLACE_NEW, of | {"read": read})


async def looked_at(session: TenantSession, ref: WorkspaceRef, version: int, asked_at: datetime | None) -> None:
    """Note as of which corpus version nothing is to be done for the themes, and that the wish of `asked_at` is met."""
    parameters = {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id}
    await session.execute(_LOOKED_AT, parameters | {"version": version, "asked_at": asked_at})
