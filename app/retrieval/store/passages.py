"""Stores passages and loads them back as evidence, from trusted versions only.

What is indexed of a passage besides its text is left to the vectors, the postings and the engines.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, text

from app.db.session import TenantSession
from app.retrieval.contract import Engine, PassageEvidence, PassageRow, WorkspaceRef
from app.retrieval.store.trust import trust_parameters, trusted
from app.text.passages import PassageDraft

_BATCH = 2000

_INSERT = text("""
WITH draft AS (
  SELECT * FROM unnest(
    CAST(:ordinals AS int[]), CAST(:texts AS text[]), CAST(:tokens AS int[]), CAST(:page_starts AS int[]),
    CAST(:page_ends AS int[]), CAST(:char_starts AS int[]), CAST(:char_ends AS int[]), CAST(:headings AS text[]),
    CAST(:hashes AS bytea[])
  ) AS d (ordinal, text, tokens, page_start, page_end, char_start, char_end, headings, content_hash)
)
INSERT INTO passages (tenant_id, workspace_id, document_id, version_id, ordinal, text, tokens, page_start, page_end,
                      char_start, char_end, heading_path, content_hash)
SELECT :tenant_id, :workspace_id, :document_id, :version_id, ordinal, text, tokens, page_start, page_end,
       char_start, char_end, ARRAY(SELECT jsonb_array_elements_text(CAST(headings AS jsonb))), content_hash
  FROM draft ORDER BY ordinal
RETURNING ordinal, id
""")

_EVIDENCE = f"""
SELECT p.id, p.document_id, p.version_id, source.title, source.filename, p.ordinal, p.text, p.page_start,
       p.page_end, p.char_start, p.char_end, p.heading_path, source.state = 'partial' AS is_partial
  FROM passages p {trusted("p")}
 WHERE p.tenant_id = :tenant_id AND p.workspace_id = :workspace_id
"""  # noqa: S608 - put together from constants of ours
_BY_IDS = text(f"""
SELECT e.* FROM unnest(CAST(:ids AS bigint[])) asked (id)
 CROSS JOIN LATERAL ({_EVIDENCE} AND p.id = asked.id OFFSET 0) e
""")  # noqa: S608 - put together from constants of ours

_TRUSTED_IDS = text(f"""
SELECT asked.id FROM unnest(CAST(:ids AS bigint[])) asked (id)
 CROSS JOIN LATERAL (
   SELECT p.tenant_id, p.version_id FROM passages p
    WHERE p.tenant_id = :tenant_id AND p.workspace_id = :workspace_id AND p.id = asked.id OFFSET 0
 ) p {trusted("p")}
""")  # noqa: S608 - put together from constants of ours

_OF_CHUNKS = text(f"""
SELECT e.*, asked.position
  FROM unnest(CAST(:versions AS uuid[]), CAST(:ordinals AS int[])) WITH ORDINALITY asked (version_id, ordinal, position)
  JOIN chunks c ON c.tenant_id = :tenant_id AND c.version_id = asked.version_id AND c.ordinal = asked.ordinal
  JOIN LATERAL ({_EVIDENCE} AND p.version_id = c.version_id AND p.ordinal BETWEEN c.first_passage AND c.last_passage) e
    ON true
 ORDER BY asked.position, e.ordinal
""")  # noqa: S608 - put together from constants of ours

_SURROUNDINGS = text("""
SELECT near.id, near.document_id, near.version_id, document.title, document.filename, near.ordinal, near.text,
       near.page_start, near.page_end, near.char_start, near.char_end, near.heading_path, false AS is_partial
  FROM passages p
  JOIN passages near ON near.tenant_id = p.tenant_id AND near.version_id = p.version_id
                    AND near.ordinal BETWEEN p.ordinal - :around AND p.ordinal + :around
  JOIN documents document ON document.tenant_id = p.tenant_id AND document.id = p.document_id
                         AND document.deleting_at IS NULL
 WHERE p.tenant_id = :tenant_id AND p.workspace_id = :workspace_id AND p.id = :passage_id
 ORDER BY near.ordinal
""")


@dataclass(frozen=True)
class StoredVersion:
    """Where new passages belong."""

    ref: WorkspaceRef
    document_id: UUID
    version_id: UUID


def indexed_text(title: str, heading_path: Sequence[str], passage: str) -> str:
    """What is embedded of a passage: its text under its title and headings, which it often does not repeat itself."""
    above = [line for line in (title, " › ".join(heading_path)) if line.strip()]
    return "\n".join([*above, passage])


def content_hash(indexed: str) -> bytes:
    """The 16-byte BLAKE2b digest under which the vector of an `indexed_text` is found again."""
    return blake2b(indexed.encode(), digest_size=16).digest()


async def insert_passages(
    session: TenantSession, version: StoredVersion, title: str, drafts: Sequence[PassageDraft]
) -> list[PassageRow]:
    """Store the passages of a new version; the rows come back in the order of `drafts`."""
    ids: dict[int, int] = {}
    for start in range(0, len(drafts), _BATCH):
        batch = drafts[start : start + _BATCH]
        found = await session.execute(_INSERT, _insert_parameters(version, title, batch))
        ids.update({row.ordinal: row.id for row in found})
    return [PassageRow(ids[draft.ordinal], draft.ordinal, draft.text, draft.heading_path) for draft in drafts]


def _insert_parameters(version: StoredVersion, title: str, drafts: Sequence[PassageDraft]) -> dict[str, Any]:
    return {
        "tenant_id": version.ref.tenant_id,
        "workspace_id": version.ref.workspace_id,
        "document_id": version.document_id,
        "version_id": version.version_id,
        "ordinals": [draft.ordinal for draft in drafts],
        "texts": [draft.text for draft in drafts],
        "tokens": [draft.tokens for draft in drafts],
        "page_starts": [draft.page_start for draft in drafts],
        "page_ends": [draft.page_end for draft in drafts],
        "char_starts": [draft.char_start for draft in drafts],
        "char_ends": [draft.char_end for draft in drafts],
        # unnest would flatten an array of arrays.
        "headings": [json.dumps(draft.heading_path) for draft in drafts],
        "hashes": [content_hash(indexed_text(title, draft.heading_path, draft.text)) for draft in drafts],
    }


async def load_evidence(
    session: TenantSession, ref: WorkspaceRef, ids: Sequence[int], *, engine: Engine, include_partial: bool = False
) -> list[PassageEvidence]:
    """The trusted ones of these passages, in the order of `ids`, with score 0."""
    parameters = {"ids": list(ids), **_scope(ref), **trust_parameters(engine, include_partial=include_partial)}
    found = await session.execute(_BY_IDS, parameters)
    by_id = {row["id"]: _evidence(row) for row in found.mappings()}
    return [by_id[passage_id] for passage_id in ids if passage_id in by_id]


async def trusted_ids(session: TenantSession, ref: WorkspaceRef, ids: Iterable[int], *, engine: Engine) -> set[int]:
    """Which of these passages are trusted."""
    parameters = {"ids": sorted(ids), **_scope(ref), **trust_parameters(engine, include_partial=False)}
    return set(await session.scalars(_TRUSTED_IDS, parameters))


async def passages_of_chunks(
    session: TenantSession,
    ref: WorkspaceRef,
    chunks: Iterable[tuple[UUID, int]],
    *,
    engine: Engine,
    include_partial: bool = False,
) -> dict[tuple[UUID, int], list[PassageEvidence]]:
    """The passages of each chunk (version, ordinal) in reading order; chunks of untrusted versions are left out."""
    asked = list(chunks)
    parameters = {
        "versions": [version_id for version_id, _ in asked],
        "ordinals": [ordinal for _, ordinal in asked],
        **_scope(ref),
        **trust_parameters(engine, include_partial=include_partial),
    }
    found: dict[tuple[UUID, int], list[PassageEvidence]] = {}
    for row in (await session.execute(_OF_CHUNKS, parameters)).mappings():
        found.setdefault(asked[row["position"] - 1], []).append(_evidence(row))
    return found


async def load_surroundings(
    session: TenantSession, ref: WorkspaceRef, passage_id: int, *, around: int = 1
) -> list[PassageEvidence]:
    """A passage with up to `around` neighbours on each side, in reading order; empty if it is gone.

    It follows a citation, so it also finds passages of versions that are not live any more.
    """
    parameters = {"passage_id": passage_id, "around": around, **_scope(ref)}
    found = await session.execute(_SURROUNDINGS, parameters)
    return [_evidence(row) for row in found.mappings()]


def ranked(evidence: Iterable[PassageEvidence], scores: dict[int, float]) -> list[PassageEvidence]:
    """The same passages with these scores."""
    return [replace(passage, score=scores[passage.passage_id]) for passage in evidence]


def _scope(ref: WorkspaceRef) -> dict[str, Any]:
    return {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id}


def _evidence(row: RowMapping) -> PassageEvidence:
    return PassageEvidence(
        passage_id=row["id"],
        document_id=row["document_id"],
        version_id=row["version_id"],
        title=row["title"],
        filename=row["filename"],
        ordinal=row["ordinal"],
        text=row["text"],
        page_start=row["page_start"],
        page_end=row["page_end"],
        char_start=row["char_start"],
        char_end=row["char_end"],
        heading_path=tuple(row["heading_path"]),
        score=0.0,
        is_partial=row["is_partial"],
    )
