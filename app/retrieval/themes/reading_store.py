"""The SQL that answers from a theme map: which map there is, its themes, what of them may be used now, and their concepts.

Every count is taken when it is asked for, from passages of versions that are trusted in the caller's snapshot and, under a
filter, allowed by it. What the map said when it was made is used for the order of themes only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import TextClause, text

from app.db.session import TenantSession
from app.retrieval.contract import WorkspaceRef
from app.retrieval.store.allowed import Allowed
from app.retrieval.store.trust import trust_parameters
from app.retrieval.themes.labels import LABEL_TERMS
from app.retrieval.themes.levels import UsableTree
from app.retrieval.themes.ranking import TermUse
from app.retrieval.themes.tree import DocumentCounts, LeafCount, MapRow, ThemeNode, ThemeTree

# Concepts that are looked at for each theme: some are shown, and the label is made from what is left of them.
CONCEPTS_READ: Final = 24
SPELLINGS_READ: Final = 3
KINDS: Final[tuple[Literal["name", "number", "word"], ...]] = ("name", "number", "word")

_MAP = text("""
SELECT m.id, m.state, m.corpus_version, m.levels, m.leaves, m.passages, m.used_passages, m.is_sampled, m.empty_reason,
       m.finished_at
  FROM theme_maps m
 WHERE m.tenant_id = :tenant_id AND m.workspace_id = :workspace_id
 ORDER BY (m.state = 'ready') DESC, m.created_at DESC LIMIT 1
""")

_THEMES = text("""
SELECT t.id, t.level, t.last_level, t.number, t.parent_id, t.first_leaf, t.last_leaf, t.size, t.distinctiveness,
       t.coverage, t.entropy, t.density, t.importance
  FROM themes t WHERE t.tenant_id = :tenant_id AND t.map_id = :map_id
 ORDER BY t.first_leaf, t.level
""")

# As a set, for a theme may hold every passage of the workspace.
_TRUSTED = """
trusted AS MATERIALIZED (
  SELECT live.version_id
    FROM live_versions live
    JOIN index_states state ON state.tenant_id = live.tenant_id AND state.version_id = live.version_id
                           AND state.engine = live.engine AND state.state = ANY (CAST(:states AS text[]))
                           AND state.cleanliness = 'clean'
    JOIN documents document ON document.tenant_id = live.tenant_id AND document.id = live.document_id
                           AND document.deleting_at IS NULL
   WHERE live.tenant_id = :tenant_id AND live.workspace_id = :workspace_id AND live.engine = :engine
)"""
_ALLOWED = "trusted AS MATERIALIZED (SELECT unnest(CAST(:versions AS uuid[])) AS version_id)"

_LEAVES = """
WITH {trusted}
SELECT p.theme_id, count(*) AS passages, count(*) FILTER (WHERE p.is_placed) AS placed
  FROM theme_passages p JOIN trusted ON trusted.version_id = p.version_id
 WHERE p.tenant_id = :tenant_id AND p.map_id = :map_id
 GROUP BY p.theme_id
"""

_DOCUMENTS = """
WITH {trusted}
SELECT asked.theme_id, count(DISTINCT p.document_id) AS documents
  FROM unnest(CAST(:themes AS uuid[]), CAST(:leaves AS uuid[])) asked (theme_id, leaf_id)
  JOIN theme_passages p ON p.tenant_id = :tenant_id AND p.map_id = :map_id AND p.theme_id = asked.leaf_id
  JOIN trusted ON trusted.version_id = p.version_id
 GROUP BY asked.theme_id
"""

_DOCUMENT_SHARES = """
WITH {trusted}
SELECT share.document_id, share.passages, document.title, document.filename
  FROM (SELECT p.document_id, count(*) AS passages
          FROM unnest(CAST(:leaves AS uuid[])) asked (leaf_id)
          JOIN theme_passages p ON p.tenant_id = :tenant_id AND p.map_id = :map_id AND p.theme_id = asked.leaf_id
          JOIN trusted ON trusted.version_id = p.version_id
         GROUP BY p.document_id
         ORDER BY count(*) DESC, p.document_id LIMIT :wanted) share
  JOIN documents document ON document.tenant_id = :tenant_id AND document.id = share.document_id
 ORDER BY share.passages DESC, share.document_id
"""

_COUNT_OUTSIDE = """
WITH {trusted}
SELECT count(*) AS documents,
       count(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM theme_passages p WHERE p.tenant_id = :tenant_id
                                             AND p.map_id = :map_id AND p.version_id = trusted.version_id)) AS outside
  FROM trusted
"""

_LIST_OUTSIDE = """
WITH {trusted}
SELECT d.id, d.title, d.filename
  FROM trusted
  JOIN versions v ON v.tenant_id = :tenant_id AND v.id = trusted.version_id
  JOIN documents d ON d.tenant_id = v.tenant_id AND d.id = v.document_id
 WHERE NOT EXISTS (SELECT 1 FROM theme_passages p
                    WHERE p.tenant_id = :tenant_id AND p.map_id = :map_id AND p.version_id = trusted.version_id)
   AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
 ORDER BY d.id LIMIT :wanted
"""

_DIGEST = """
WITH {trusted}
SELECT sha256(string_agg(passage.content_hash, ''::bytea ORDER BY passage.content_hash)) AS digest,
       coalesce(array_agg(DISTINCT p.version_id), '{{}}') AS versions
  FROM unnest(CAST(:leaves AS uuid[])) asked (leaf_id)
  JOIN theme_passages p ON p.tenant_id = :tenant_id AND p.map_id = :map_id AND p.theme_id = asked.leaf_id
  JOIN trusted ON trusted.version_id = p.version_id
  JOIN passages passage ON passage.tenant_id = :tenant_id AND passage.id = p.passage_id
"""

# One passage of each document before a second one of any.
_MEMBERS = """
WITH {trusted}, members AS (
  SELECT asked.theme_id, p.passage_id, p.weight,
         row_number() OVER (PARTITION BY asked.theme_id, p.document_id ORDER BY p.weight DESC, p.passage_id) AS turn
    FROM unnest(CAST(:themes AS uuid[]), CAST(:leaves AS uuid[])) asked (theme_id, leaf_id)
    JOIN theme_passages p ON p.tenant_id = :tenant_id AND p.map_id = :map_id AND p.theme_id = asked.leaf_id
    JOIN trusted ON trusted.version_id = p.version_id
), placed AS (
  SELECT *, row_number() OVER (PARTITION BY theme_id ORDER BY turn, weight DESC, passage_id) AS place FROM members
)
SELECT theme_id, array_agg(passage_id ORDER BY place) AS passages FROM placed WHERE place <= :wanted GROUP BY theme_id
"""

_LEAVES_OF = text("""
SELECT p.passage_id, p.theme_id, p.document_id FROM theme_passages p
 WHERE p.tenant_id = :tenant_id AND p.map_id = :map_id AND p.passage_id = ANY (CAST(:ids AS bigint[]))
""")

_TERM_USES = """
WITH {trusted}
SELECT p.theme_id, t.key, sum(t.frequency) AS frequency, count(*) AS passages
  FROM unnest(CAST(:keys AS bigint[])) asked (key)
 CROSS JOIN LATERAL (SELECT t.key, t.passage_id, t.frequency FROM term_postings t
                      WHERE t.workspace = :workspace AND t.key = asked.key OFFSET 0) t
 CROSS JOIN LATERAL (SELECT p.theme_id, p.version_id FROM theme_passages p
                      WHERE p.tenant_id = :tenant_id AND p.map_id = :map_id AND p.passage_id = t.passage_id OFFSET 0) p
  JOIN trusted ON trusted.version_id = p.version_id
 GROUP BY p.theme_id, t.key
"""

# Spelt as a passage has it that may be used: what was written down at the build may be the spelling of others.
_CONCEPTS = """
WITH {trusted}, wanted AS (
  SELECT c.theme_id, c.key, c.kind, c.lift, c.rank, c.label_rank, c.surface
    FROM unnest(CAST(:asked AS uuid[])) chosen (theme_id)
    JOIN theme_concepts c ON c.tenant_id = :tenant_id AND c.map_id = :map_id AND c.theme_id = chosen.theme_id
   WHERE (c.rank < :concepts_read OR c.label_rank < :labels_read) AND c.surface IS NOT NULL
), leaves AS (
  SELECT asked.theme_id, asked.leaf_id
    FROM unnest(CAST(:themes AS uuid[]), CAST(:leaves AS uuid[])) asked (theme_id, leaf_id)
), counted AS (
SELECT wanted.*, count(*) AS passages, (array_agg(t.passage_id ORDER BY t.passage_id))[1 : :looked_at] AS few
  FROM wanted
 CROSS JOIN LATERAL (SELECT t.passage_id FROM concept_postings t
                      WHERE t.workspace = :workspace AND t.key = wanted.key OFFSET 0) t
 CROSS JOIN LATERAL (SELECT p.theme_id AS leaf_id, p.version_id FROM theme_passages p
                      WHERE p.tenant_id = :tenant_id AND p.map_id = :map_id AND p.passage_id = t.passage_id OFFSET 0) p
  JOIN leaves ON leaves.theme_id = wanted.theme_id AND leaves.leaf_id = p.leaf_id
  JOIN trusted ON trusted.version_id = p.version_id
 GROUP BY wanted.theme_id, wanted.key, wanted.kind, wanted.lift, wanted.rank, wanted.label_rank, wanted.surface
)
SELECT counted.theme_id, counted.key, counted.kind, counted.lift, counted.label_rank, counted.passages, spelt.surface
  FROM counted
 CROSS JOIN LATERAL (
   SELECT said.surface
     FROM lazy_passages l CROSS JOIN LATERAL (SELECT l.surfaces[array_position(l.keys, counted.key)]) said (surface)
    WHERE l.workspace = :workspace AND l.passage_id = ANY (counted.few)
    ORDER BY (said.surface = counted.surface) DESC, l.passage_id LIMIT 1
 ) spelt
 ORDER BY counted.theme_id, counted.rank, counted.key
"""


@cache
def _statement(template: str, *, is_narrowed: bool) -> TextClause:
    return text(template.format(trusted=_ALLOWED if is_narrowed else _TRUSTED))


@dataclass(frozen=True)
class Usable:
    """Which passages may be used: those of trusted versions, or of the ones that a filter allows."""

    session: TenantSession
    ref: WorkspaceRef
    map_id: UUID
    include_partial: bool
    allowed: Allowed | None

    async def rows(self, template: str, **parameters: Any) -> Sequence[Any]:
        given: dict[str, Any] = {"tenant_id": self.ref.tenant_id, "map_id": self.map_id, **parameters}
        if self.allowed is None:
            given["workspace_id"] = self.ref.workspace_id
            given |= trust_parameters("lazy", include_partial=self.include_partial)
        else:
            given["versions"] = list(self.allowed.version_ids)
        statement = _statement(template, is_narrowed=self.allowed is not None)
        return (await self.session.execute(statement, given)).all()


@dataclass(frozen=True)
class ConceptRow:
    """A concept of a theme with the passages of the theme that hold it and may be used; `label_rank` None: no term of the
    label."""

    key: int
    label: str
    kind: Literal["name", "number", "word"]
    passages: int
    lift: float
    label_rank: int | None


@dataclass(frozen=True)
class DocumentShare:
    """A document, and how many passages of a theme it has."""

    document_id: UUID
    title: str
    filename: str
    passages: int


@dataclass(frozen=True)
class OutsideDocument:
    """A document that no theme speaks of."""

    document_id: UUID
    title: str
    filename: str


@dataclass(frozen=True)
class Membership:
    """The leaf and the document of a passage."""

    leaf_id: UUID
    document_id: UUID


async def load_map_row(session: TenantSession, ref: WorkspaceRef) -> MapRow | None:
    """The workspace's ready map, else one that is being made, else None."""
    parameters = {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id}
    row = (await session.execute(_MAP, parameters)).one_or_none()
    return None if row is None else MapRow(**row._mapping)


async def load_tree(session: TenantSession, ref: WorkspaceRef, map_id: UUID) -> ThemeTree:
    rows = await session.execute(_THEMES, {"tenant_id": ref.tenant_id, "map_id": map_id})
    return ThemeTree(tuple(ThemeNode(**row._mapping) for row in rows))


async def load_usable_tree(row: MapRow, usable: Usable) -> UsableTree:
    """The themes of a map with what may be used of it."""
    tree = await load_tree(usable.session, usable.ref, row.id)
    return UsableTree(row, tree, await count_leaves(usable), await count_outside(usable))


async def count_leaves(usable: Usable) -> dict[UUID, LeafCount]:
    """Per leaf that has any."""
    return {row.theme_id: LeafCount(row.passages, row.placed) for row in await usable.rows(_LEAVES)}


async def count_documents(usable: Usable, leaves: Mapping[UUID, Sequence[UUID]]) -> dict[UUID, int]:
    """Per theme, of which the leaves are given."""
    return {row.theme_id: row.documents for row in await usable.rows(_DOCUMENTS, **_pairs(leaves))}


async def load_documents(usable: Usable, leaves: Sequence[UUID], wanted: int) -> list[DocumentShare]:
    """The documents with most passages in these leaves."""
    rows = await usable.rows(_DOCUMENT_SHARES, leaves=list(leaves), wanted=wanted)
    return [DocumentShare(row.document_id, row.title, row.filename, row.passages) for row in rows]


async def count_outside(usable: Usable) -> DocumentCounts:
    [row] = await usable.rows(_COUNT_OUTSIDE)
    return DocumentCounts(row.documents, row.outside)


async def load_outside(usable: Usable, after: UUID | None, wanted: int) -> list[OutsideDocument]:
    """Documents in no theme by their ids, from the first after `after`."""
    rows = await usable.rows(_LIST_OUTSIDE, after=after, wanted=wanted)
    return [OutsideDocument(row.id, row.title, row.filename) for row in rows]


async def digest_content(usable: Usable, leaves: Sequence[UUID]) -> tuple[bytes, tuple[UUID, ...]]:
    """Of what the passages of these leaves say, whatever their order; equal as long as they say the same. And whose they
    are, by version."""
    [row] = await usable.rows(_DIGEST, leaves=list(leaves))
    return bytes(row.digest or b""), tuple(row.versions)


async def load_members(usable: Usable, leaves: Mapping[UUID, Sequence[UUID]], wanted: int) -> dict[UUID, list[int]]:
    """Per theme its passages that say most of it, spread over its documents."""
    rows = await usable.rows(_MEMBERS, **_pairs(leaves), wanted=wanted)
    return {row.theme_id: row.passages for row in rows}


async def load_memberships(usable: Usable, ids: Sequence[int]) -> dict[int, Membership]:
    """Where these passages belong; those that belong to no theme are missing."""
    parameters = {"tenant_id": usable.ref.tenant_id, "map_id": usable.map_id, "ids": list(ids)}
    rows = await usable.session.execute(_LEAVES_OF, parameters)
    return {row.passage_id: Membership(row.theme_id, row.document_id) for row in rows}


async def load_term_uses(usable: Usable, keys: Mapping[int, str]) -> dict[UUID, dict[str, TermUse]]:
    """Per leaf how often its passages use terms; `keys` are those of the terms' postings."""
    rows = await usable.rows(_TERM_USES, workspace=usable.ref.number, keys=sorted(keys))
    uses: dict[UUID, dict[str, TermUse]] = {}
    for row in rows:
        uses.setdefault(row.theme_id, {})[keys[row.key]] = TermUse(int(row.frequency), row.passages)
    return uses


async def load_concepts(usable: Usable, leaves: Mapping[UUID, Sequence[UUID]]) -> dict[UUID, list[ConceptRow]]:
    """Per theme its concepts that a usable passage of it holds, the most telling first."""
    rows = await usable.rows(
        _CONCEPTS,
        **_pairs(leaves),
        asked=list(leaves),
        workspace=usable.ref.number,
        concepts_read=CONCEPTS_READ,
        labels_read=LABEL_TERMS,
        looked_at=SPELLINGS_READ,
    )
    found: dict[UUID, list[ConceptRow]] = {}
    for row in rows:
        concept = ConceptRow(row.key, row.surface, KINDS[row.kind], row.passages, row.lift, row.label_rank)
        found.setdefault(row.theme_id, []).append(concept)
    return found


def _pairs(leaves: Mapping[UUID, Sequence[UUID]]) -> dict[str, list[UUID]]:
    pairs = [(theme_id, leaf_id) for theme_id, inside in leaves.items() for leaf_id in inside]
    return {"themes": [theme_id for theme_id, _ in pairs], "leaves": [leaf_id for _, leaf_id in pairs]}
