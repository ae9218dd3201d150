"""The SQL of the lazy index: write and remove a version's rows, read the concepts of passages and the passages of
concepts. Every row belongs to one version, so two writers never wait for each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from sqlalchemy import TextClause, text

from app.db.session import TenantSession
from app.db.statements import as_array
from app.retrieval.contract import WorkspaceRef
from app.retrieval.lazy.selection import NAMING_FLAGS, Mention
from app.retrieval.store.allowed import Allowed, allowed_parameters, within
from app.retrieval.store.theme_placing import FORGETTING, SHARE, SHARED_LOCK, TAKE_TURNS, placing
from app.retrieval.store.trust import UNTRUSTED_PASSAGES, trust_parameters, trusted_passage

# The last statement of a version: its passages, which are all there now, join the workspace's themes.
_ADD_VERSION = text(f"""
WITH version AS (
  SELECT p.tenant_id, p.version_id FROM passages p WHERE p.tenant_id = :tenant_id AND p.id = :passage_id
), placed AS ({placing("passages q WHERE (q.tenant_id, q.version_id) = (SELECT tenant_id, version_id FROM version)")}
)
INSERT INTO lazy_versions (tenant_id, version_id, workspace, passages, terms)
SELECT tenant_id, version_id, :workspace, :passages, :terms FROM version
""")  # noqa: S608 - put together from constants of ours

# Arrays come as text, for the driver takes longer for each element of an array than for all of a string. Postings are made
# of what was stored, in the order of the primary key, which fills its pages best.
_ADD_PASSAGES = text(f"""
WITH given AS MATERIALIZED (
  SELECT passage_id, CAST(keys AS bigint[]) AS keys, CAST(flags AS smallint[]) AS flags,
         CAST(sentences AS bigint[]) AS sentences, CAST(surfaces AS jsonb) AS surfaces, CAST(terms AS bigint[]) AS terms
    FROM {SHARED_LOCK}
   CROSS JOIN unnest(CAST(:ids AS bigint[]), CAST(:keys AS text[]), CAST(:flags AS text[]), CAST(:sentences AS text[]),
                CAST(:surfaces AS text[]), CAST(:terms AS text[]))
         AS rows (passage_id, keys, flags, sentences, surfaces, terms)
), passages AS (
  INSERT INTO lazy_passages (workspace, passage_id, keys, flags, sentences, surfaces, terms)
  SELECT :workspace, passage_id, keys, flags, sentences, ARRAY(SELECT jsonb_array_elements_text(surfaces)), terms
    FROM given
)
INSERT INTO concept_postings (workspace, key, passage_id, flags)
SELECT :workspace, mention.key, given.passage_id, mention.flags
  FROM given CROSS JOIN LATERAL unnest(given.keys, given.flags) AS mention (key, flags)
 ORDER BY mention.key, given.passage_id
""")  # noqa: S608

_SHARE, _TAKE_TURNS = text(SHARE), text(TAKE_TURNS)
_REMOVE_VERSION = text("""
DELETE FROM lazy_versions WHERE tenant_id = :tenant_id AND version_id = :version_id AND workspace = :workspace
""")

# A passage's own arrays say where its postings are, so the postings need no second index.
_REMOVE_PASSAGES = text(f"""
WITH gone AS (
  DELETE FROM lazy_passages l USING passages p
   WHERE p.tenant_id = :tenant_id AND p.version_id = :version_id
     AND l.workspace = :workspace AND l.passage_id = p.id
  RETURNING l.passage_id, l.keys, l.terms
), {FORGETTING}, concepts AS (
  DELETE FROM concept_postings t USING (SELECT passage_id, unnest(keys) AS key FROM gone) g
   WHERE t.workspace = :workspace AND t.key = g.key AND t.passage_id = g.passage_id
)
DELETE FROM term_postings t USING (SELECT passage_id, unnest(terms) AS key FROM gone) g
 WHERE t.workspace = :workspace AND t.key = g.key AND t.passage_id = g.passage_id
""")  # noqa: S608

_SEEDS = text("""
SELECT l.passage_id, l.keys, l.flags, l.sentences, l.surfaces, passage.text, passage.heading_path, passage.title
  FROM lazy_passages l
 CROSS JOIN LATERAL (
   SELECT p.text, p.heading_path, d.title
     FROM passages p JOIN documents d ON d.tenant_id = p.tenant_id AND d.id = p.document_id
    WHERE p.tenant_id = :tenant_id AND p.id = l.passage_id OFFSET 0
 ) passage
 WHERE l.workspace = :workspace AND l.passage_id = ANY (CAST(:ids AS bigint[]))
 ORDER BY l.passage_id
""")

_CORPUS_VERSION = text(
    "SELECT version FROM corpus_versions WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id"
)

_POSTINGS = """
SELECT asked.key, found.ids, found.flags
  FROM unnest(CAST(:keys AS bigint[])) asked (key)
 CROSS JOIN LATERAL (
   SELECT array_agg(passage_id) AS ids, array_agg(flags) AS flags
     FROM (SELECT t.passage_id, t.flags FROM concept_postings t
            WHERE t.workspace = :workspace AND t.key = asked.key WITHIN(t.passage_id) LIMIT :max_df + 1) few
 ) found
 WHERE found.ids IS NOT NULL
"""
_UNTRUSTED = text(UNTRUSTED_PASSAGES)


# Bounded in rows read, for a name may be in very many passages; one that is in more tells nothing.
_NAMED = f"""
SELECT asked.key, array_agg(named.passage_id) AS ids, array_agg(named.flags) AS flags
  FROM unnest(CAST(:keys AS bigint[])) asked (key)
 CROSS JOIN LATERAL (
   SELECT few.passage_id, few.flags
     FROM (SELECT read.passage_id, read.flags, count(*) OVER () AS df
             FROM (SELECT t.passage_id, t.flags FROM concept_postings t
                    WHERE t.workspace = :workspace AND t.key = asked.key WITHIN(t.passage_id) LIMIT :scanned + 1) read) few
    WHERE few.df <= :scanned AND few.flags & :naming <> 0 LIMIT :most + 1
 ) named
  {trusted_passage("named.passage_id")}
 GROUP BY asked.key
"""  # noqa: S608 - put together from constants of ours

_HELD = text("""
SELECT passage_id, array_agg(key) AS keys FROM term_postings
 WHERE workspace = :workspace AND key = ANY (CAST(:keys AS bigint[])) AND passage_id = ANY (CAST(:ids AS bigint[]))
 GROUP BY passage_id
""")
_SCANNED_POSTINGS = 1000


@cache
def _statement(template: str, *, is_narrowed: bool) -> TextClause:
    return text(within(template, is_narrowed=is_narrowed))


@dataclass(frozen=True)
class SeedPassage:
    """A passage with its concepts and what stands above it."""

    passage_id: int
    mentions: Sequence[tuple[int, int, int, str]]  # as `Mention`, of which there are hundreds for a question
    title: str
    heading_path: tuple[str, ...]
    text: str


Postings = Mapping[int, Sequence[tuple[int, int]]]
"""Per concept the passages that hold it, as (passage id, flags)."""


async def add_version(
    session: TenantSession, ref: WorkspaceRef, first_passage_id: int, *, passages: int, terms: int
) -> None:
    """Note that the version of this passage is indexed, and place its passages in themes; `terms` is the length of all its passages together."""
    parameters = {
        "tenant_id": ref.tenant_id,
        "workspace_id": ref.workspace_id,
        "workspace": ref.number,
        "passage_id": first_passage_id,
        "passages": passages,
        "terms": terms,
    }
    await session.execute(_ADD_VERSION, parameters)


async def add_passages(
    session: TenantSession,
    ref: WorkspaceRef,
    mentions: Mapping[int, Sequence[Mention]],
    term_keys: Mapping[int, Sequence[int]],
    surfaces: Mapping[int, str],
) -> None:
    """Store the concepts and term keys of passages by passage id, and the postings of the concepts.

    `surfaces` holds, as a JSON array, how each passage writes its concepts.
    """
    parameters = {
        "workspace": ref.number,
        "ids": list(mentions),
        "keys": [as_array([mention[0] for mention in found]) for found in mentions.values()],
        "flags": [as_array([mention[1] for mention in found]) for found in mentions.values()],
        "sentences": [as_array([mention[2] for mention in found]) for found in mentions.values()],
        "surfaces": [surfaces[passage_id] for passage_id in mentions],
        "terms": [as_array(term_keys[passage_id]) for passage_id in mentions],
    }
    await session.execute(_ADD_PASSAGES, parameters)


async def remove_version(session: TenantSession, ref: WorkspaceRef, version_id: UUID) -> None:
    """Remove all rows of a version; its passages must still be there. Two removers take turns at its first row."""
    parameters = {
        "tenant_id": ref.tenant_id,
        "workspace_id": ref.workspace_id,
        "workspace": ref.number,
        "version_id": version_id,
    }
    for statement in (_SHARE, _TAKE_TURNS, _REMOVE_VERSION, _REMOVE_PASSAGES):
        await session.execute(statement, parameters)


async def load_corpus_version(session: TenantSession, ref: WorkspaceRef) -> int | None:
    """As the session's snapshot has it; None where the workspace is gone."""
    parameters = {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id}
    version: int | None = await session.scalar(_CORPUS_VERSION, parameters)
    return version


async def load_seeds(session: TenantSession, ref: WorkspaceRef, ids: Sequence[int]) -> dict[int, SeedPassage]:
    """These passages with their concepts, by id."""
    parameters = {"tenant_id": ref.tenant_id, "workspace": ref.number, "ids": sorted(ids)}
    found = await session.execute(_SEEDS, parameters)
    return {
        row.passage_id: SeedPassage(
            passage_id=row.passage_id,
            mentions=list(zip(row.keys, row.flags, row.sentences, row.surfaces, strict=True)),
            title=row.title,
            heading_path=tuple(row.heading_path),
            text=row.text,
        )
        for row in found
    }


async def load_postings(
    session: TenantSession, ref: WorkspaceRef, keys: Sequence[int], *, max_df: int, allowed: Allowed | None = None
) -> Postings:
    """The passages of each concept, of those `allowed`, if any are given; a concept in more than `max_df` comes with
    `max_df` + 1 of them, in no set order."""
    parameters = {"workspace": ref.number, "keys": sorted(keys), "max_df": max_df, **allowed_parameters(allowed)}
    found = await session.execute(_statement(_POSTINGS, is_narrowed=allowed is not None), parameters)
    return {row.key: list(zip(row.ids, row.flags, strict=True)) for row in found}


async def load_untrusted(session: TenantSession, ref: WorkspaceRef, *, include_partial: bool) -> frozenset[int]:
    """The indexed passages that no answer may use: of what is being deleted or was replaced, until it is removed."""
    parameters = {"tenant_id": ref.tenant_id, "workspace": ref.number}
    parameters |= trust_parameters("lazy", include_partial=include_partial)
    return frozenset(await session.scalars(_UNTRUSTED, parameters))


async def load_named(
    session: TenantSession,
    ref: WorkspaceRef,
    keys: Sequence[int],
    *,
    most: int,
    include_partial: bool = False,
    allowed: Allowed | None = None,
) -> Postings:
    """The trusted passages that are about each concept by their title or the begin of a paragraph, `most` + 1 of them."""
    parameters = {
        "tenant_id": ref.tenant_id,
        "workspace": ref.number,
        "keys": sorted(keys),
        "naming": NAMING_FLAGS,
        "scanned": _SCANNED_POSTINGS,
        "most": most,
        **allowed_parameters(allowed),
        **trust_parameters("lazy", include_partial=include_partial),
    }
    found = await session.execute(_statement(_NAMED, is_narrowed=allowed is not None), parameters)
    return {row.key: list(zip(row.ids, row.flags, strict=True)) for row in found}


async def load_held(
    session: TenantSession, ref: WorkspaceRef, ids: Sequence[int], keys: Sequence[int]
) -> dict[int, list[int]]:
    """Which of these terms each passage holds; one that holds none is missing."""
    parameters = {"workspace": ref.number, "ids": sorted(ids), "keys": sorted(keys)}
    found = await session.execute(_HELD, parameters)
    return {row.passage_id: row.keys for row in found}
