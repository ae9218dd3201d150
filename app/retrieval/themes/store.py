"""The SQL of themes: read the concepts of a workspace, write a map and put it live, read it with what is trusted now.

Figures and words of a map are of the time of its build. What people are shown is counted again, and a word only where a
trusted passage still holds it.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Row, text

from app.db.session import TenantSession
from app.retrieval.contract import WorkspaceRef
from app.retrieval.store.trust import trust_parameters, trusted, trusted_passage
from app.retrieval.themes.inheritance import Ancestry, Forebear
from app.retrieval.themes.rows import Rows

_TRUSTED_VERSIONS = f"""
  SELECT v.tenant_id, v.version_id, v.passages
    FROM (SELECT l.tenant_id, l.version_id, l.passages FROM lazy_versions l
           WHERE l.tenant_id = :tenant_id AND l.workspace = :workspace OFFSET 0) v {trusted("v")}"""  # noqa: S608

_CORPUS = text(f"""
SELECT (SELECT version FROM corpus_versions WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id) AS version,
       coalesce(sum(trusted.passages), 0)::int AS passages, coalesce(array_agg(trusted.version_id), '{{}}') AS versions
  FROM ({_TRUSTED_VERSIONS}) trusted
""")  # noqa: S608

# Which passages a sample takes does not depend on when it is taken, so two maps of one corpus are of the same ones.
_MENTIONS = text(f"""
SELECT p.id, p.version_id, p.document_id, l.keys, l.flags
  FROM ({_TRUSTED_VERSIONS}) v
  JOIN passages p ON p.tenant_id = v.tenant_id AND p.version_id = v.version_id
  JOIN lazy_passages l ON l.workspace = :workspace AND l.passage_id = p.id
 WHERE hashint8(p.id)::bigint + 2147483648 < :cut
""")  # noqa: S608

# As most of a few passages write it; which few does not matter much.
_SURFACES = text(f"""
SELECT DISTINCT ON (found.key) found.key, found.surface
  FROM (
    SELECT asked.key, written.surface, count(*) AS times
      FROM unnest(CAST(:keys AS bigint[])) AS asked (key)
     CROSS JOIN LATERAL (
       SELECT t.passage_id FROM concept_postings t
        WHERE t.workspace = :workspace AND t.key = asked.key LIMIT :looked_at
     ) few
     {trusted_passage("few.passage_id")}
      JOIN lazy_passages l ON l.workspace = :workspace AND l.passage_id = few.passage_id
     CROSS JOIN LATERAL (
       SELECT u.surface FROM unnest(l.keys, l.surfaces) AS u (key, surface) WHERE u.key = asked.key LIMIT 1
     ) written
     GROUP BY asked.key, written.surface
  ) found
 ORDER BY found.key, found.times DESC, found.surface
""")  # noqa: S608

_ADD_THEMES = text("""
INSERT INTO themes (tenant_id, map_id, id, level, last_level, number, parent_id, first_leaf, last_leaf, passages, documents,
                    size, distinctiveness, coverage, entropy, density, importance, product)
SELECT :tenant_id, :map_id, t.id, t.level, t.last_level, t.number, t.parent_id, t.first_leaf, t.last_leaf, t.passages,
       t.documents, t.size, t.distinctiveness, t.coverage, t.entropy, t.density, t.importance, t.product
  FROM jsonb_to_recordset(CAST(:rows AS jsonb))
       AS t (id uuid, level int, last_level int, number int, parent_id uuid, first_leaf int, last_leaf int, passages int,
             documents int, size float, distinctiveness float, coverage float, entropy float, density float,
             importance float, product float)
""")

_ADD_CONCEPTS = text("""
INSERT INTO theme_concepts (tenant_id, map_id, theme_id, key, kind, df, corpus_df, lift, rank, weight, degree, pagerank,
                            surface, label_rank)
SELECT :tenant_id, :map_id, c.theme_id, c.key, c.kind, c.df, c.corpus_df, c.lift, c.rank, c.weight, c.degree, c.pagerank,
       c.surface, c.label_rank
  FROM jsonb_to_recordset(CAST(:rows AS jsonb))
       AS c (theme_id uuid, key bigint, kind smallint, df int, corpus_df int, lift float, rank int, weight float,
             degree int, pagerank float, surface text, label_rank smallint)
""")

_ADD_PASSAGES = text("""
INSERT INTO theme_passages (tenant_id, map_id, passage_id, theme_id, version_id, document_id, weight, is_placed)
SELECT :tenant_id, :map_id, p.passage_id, p.theme_id, p.version_id, p.document_id, p.weight, false
  FROM jsonb_to_recordset(CAST(:rows AS jsonb))
       AS p (passage_id bigint, theme_id uuid, version_id uuid, document_id uuid, weight float)
""")

_ADD = {"themes": _ADD_THEMES, "concepts": _ADD_CONCEPTS, "passages": _ADD_PASSAGES}

_READY = text("""
SELECT id, corpus_version, levels, base_level, leaves, passages, used_passages, assigned, is_sampled, concepts, edges,
       empty_reason, milliseconds, parameters, created_at, finished_at
  FROM theme_maps WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id AND state = 'ready'
""")

_PLACES = text("""
SELECT t.passage_id, t.theme_id FROM theme_passages t WHERE t.tenant_id = :tenant_id AND t.map_id = :map_id
""")

_FAMILY = text("""
SELECT t.id, t.level, t.first_leaf, t.last_leaf
  FROM themes t WHERE t.tenant_id = :tenant_id AND t.map_id = :map_id
""")

_MOVED = text(f"""
SELECT count(*) FILTER (WHERE t.is_placed)::int AS placed, count(*) FILTER (WHERE NOT t.is_placed)::int AS kept,
       (SELECT coalesce(sum(passages), 0)::int FROM ({_TRUSTED_VERSIONS}) trusted) AS passages
  FROM theme_passages t WHERE t.tenant_id = :tenant_id AND t.map_id = :map_id
""")  # noqa: S608

_LOOKED_AT = 12
_ROWS_AT_ONCE = 5000


@dataclass(frozen=True)
class ThemeMapFacts:
    """A map that is answered from; `levels` is 0 where there are no themes, and `empty_reason` says why."""

    id: UUID
    corpus_version: int
    levels: int
    base_level: int
    leaves: int
    passages: int
    used_passages: int
    assigned: int
    is_sampled: bool
    concepts: int
    edges: int
    empty_reason: str | None
    milliseconds: float
    parameters: dict[str, Any]
    created_at: datetime
    finished_at: datetime


@dataclass(frozen=True)
class Moved:
    """What has come and gone since the build, in passages that are in a theme: joined since, of the build and still
    there; and all trusted passages now."""

    placed: int
    kept: int
    passages: int

    def share(self, of: ThemeMapFacts) -> float:
        """The share of the map's passages that came or went since, 0..1 and more; of a sample, as if it were all."""
        scale = of.passages / of.used_passages if of.used_passages else 1.0
        gone = max(0, of.assigned - self.kept) * scale
        grown = abs(self.passages - of.passages)  # also such as are in no theme
        return max(self.placed + gone, grown) / max(1, of.passages)


async def read_corpus(session: TenantSession, ref: WorkspaceRef) -> tuple[int, int, list[UUID]]:
    """The corpus version that this session sees, how many passages are trusted, and of which versions."""
    row = (await session.execute(_CORPUS, _of(ref))).one()
    return row.version, row.passages, row.versions


async def stream_mentions(session: TenantSession, ref: WorkspaceRef, share: float) -> AsyncIterator[Row[Any]]:
    """The trusted passages, or a `share` of them, with the keys and flags of their concepts, a few at a time."""
    async for row in await session.stream(_MENTIONS, _of(ref) | {"cut": int(share * 2**32)}):
        yield row


async def load_surfaces(session: TenantSession, ref: WorkspaceRef, keys: Iterable[int]) -> dict[int, str]:
    """How each of these concepts is mostly written in trusted passages; one that none holds is missing."""
    asked = sorted(keys)
    found: dict[int, str] = {}
    for start in range(0, len(asked), _ROWS_AT_ONCE):
        parameters = _of(ref) | {"keys": asked[start : start + _ROWS_AT_ONCE], "looked_at": _LOOKED_AT}
        found.update((row.key, row.surface) for row in await session.execute(_SURFACES, parameters))
    return found


async def find_map(session: TenantSession, ref: WorkspaceRef) -> ThemeMapFacts | None:
    """The map that the workspace is answered from, if it has one."""
    found = (
        await session.execute(_READY, {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id})
    ).one_or_none()
    return None if found is None else ThemeMapFacts(**found._mapping)


async def load_moved(session: TenantSession, ref: WorkspaceRef, map_id: UUID) -> Moved:
    """What has come and gone since the map was built."""
    row = (await session.execute(_MOVED, _of(ref) | {"map_id": map_id})).one()
    return Moved(row.placed, row.kept, row.passages)


async def load_ancestry(session: TenantSession, ref: WorkspaceRef, map_id: UUID) -> Ancestry:
    """The map's themes, and where its passages are."""
    parameters = {"tenant_id": ref.tenant_id, "map_id": map_id}
    themes = [Forebear(**row._mapping) for row in await session.execute(_FAMILY, parameters)]
    numbers = {theme.id: theme.first_leaf for theme in themes if theme.is_leaf}
    places = await session.execute(_PLACES, parameters)
    return Ancestry(themes, {row.passage_id: numbers[row.theme_id] for row in places})


async def add_rows(
    session: TenantSession,
    ref: WorkspaceRef,
    map_id: UUID,
    table: Literal["themes", "concepts", "passages"],
    rows: Rows,
) -> None:
    """Write rows of a map that is not answered from yet: objects with the names of the columns."""
    for packed in rows:
        await session.execute(_ADD[table], {"tenant_id": ref.tenant_id, "map_id": map_id, "rows": packed})


def _of(ref: WorkspaceRef) -> dict[str, Any]:
    return {
        "tenant_id": ref.tenant_id,
        "workspace_id": ref.workspace_id,
        "workspace": ref.number,
        **trust_parameters("lazy", include_partial=False),
    }
