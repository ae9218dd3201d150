"""What each chunk said of each entity and relation, taken from the extraction that LightRAG parsed for its merge."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from lightrag import LightRAG
from lightrag.utils import update_chunk_cache_list

from app.retrieval.contract import Statement, WorkspaceRef
from app.retrieval.lightrag.storage.aliases import Extraction, current_names, names_of
from app.retrieval.lightrag.storage.sql import split, value_bytes

_CHUNK = "-chunk-"

_recorded: ContextVar["Extractions | None"] = ContextVar("engine_extractions", default=None)

_DELETE = "DELETE FROM mentions WHERE tenant_id = $1 AND workspace_id = $2 AND version_id = ANY($3)"

_FORGET = """
DELETE FROM mentions WHERE tenant_id = $1 AND workspace_id = $2 AND (name = ANY ($3) OR target = ANY ($3))"""

_FORGET_BETWEEN = """
DELETE FROM mentions
 WHERE tenant_id = $1 AND workspace_id = $2 AND md5(name) IN (md5($3), md5($4))
   AND ((name = $3 AND target = $4) OR (name = $4 AND target = $3))"""

_INSERT = """
INSERT INTO mentions (tenant_id, workspace_id, version_id, chunk_ordinal, name, target, type, description, keywords)
SELECT $1, $2, u.* FROM unnest($3::uuid[], $4::int4[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[]) AS u"""


@dataclass(frozen=True)
class Mention:
    """One row of `mentions`; `target` is the other end of a relation, `type` an entity's."""

    version_id: UUID
    chunk_ordinal: int
    name: str
    target: str | None
    type: str | None
    description: str
    keywords: str | None


@dataclass(frozen=True)
class ReadChunk:
    """What LightRAG's parser read in the answers about one chunk, and their keys in the cache."""

    said: Extraction
    answer_keys: tuple[str, ...]


@dataclass
class Extractions:
    """What an insert was given to merge, chunk by chunk; `read` is what was read before, by the chunks' ids."""

    read: Mapping[str, ReadChunk]
    chunks: list[Extraction] = field(default_factory=list)

    async def recall(self, rag: LightRAG, chunk_ids: Iterable[str]) -> list[Extraction]:
        """What LightRAG would read now, and the note beside the chunk that it would make of it.

        The merge gets copies, for an insert that meets a conflict begins again.
        """
        found: list[Extraction] = []
        for chunk_id in chunk_ids:
            chunk = self.read[chunk_id]
            await update_chunk_cache_list(chunk_id, rag.text_chunks, list(chunk.answer_keys), "entity_extraction")
            entities, relations = chunk.said
            found.append(
                (
                    {name: [dict(record) for record in records] for name, records in entities.items()},
                    {pair: [dict(record) for record in records] for pair, records in relations.items()},
                )
            )
        return found

    @property
    def names(self) -> set[str]:
        """Every entity that was spoken of."""
        return set(names_of(self.chunks))

    def mentions(self) -> Iterator[Mention]:
        """Each distinct statement of each chunk once, in the order in which it was made."""
        found: dict[Mention, None] = {}
        for entities, relations in self.chunks:
            for name, records in entities.items():
                for record in records:
                    found.setdefault(_mention(record, name, None))
            for (source, target), records in relations.items():
                for record in records:
                    found.setdefault(_mention(record, source, target))
        return iter(found)


def expose_extractions(rag: LightRAG) -> None:
    """From now on `rag` merges what was read before, where an operation has it, under resolved names, where it has them,
    and `recorded_extractions` learns what.

    The hook sits on the instance, around the step between extraction and merge; LightRAG has no plug-in point there.
    """
    extract = rag._process_extract_entities

    @functools.wraps(extract)
    async def extract_and_record(texts: Mapping[str, Any], *arguments: Any, **options: Any) -> Any:
        found = _recorded.get()
        if found is not None and texts.keys() <= found.read.keys():
            chunks: Any = await found.recall(rag, texts)
        else:
            chunks = await extract(texts, *arguments, **options)
        names = current_names()
        if names is not None:
            chunks = await names.apply(chunks)
        if found is not None:
            found.chunks.extend(chunks)
        return chunks

    rag._process_extract_entities = extract_and_record


@contextmanager
def recorded_extractions(read: Mapping[str, ReadChunk] | None = None) -> Iterator[Extractions]:
    """Collects what is extracted by the inserts inside, which take what was `read` before."""
    found = Extractions(read or {})
    token = _recorded.set(found)
    try:
        yield found
    finally:
        _recorded.reset(token)


def insert_mentions(ref: WorkspaceRef, mentions: Sequence[Mention]) -> Iterator[Statement]:
    """Statements that store what was said."""
    rows = [
        (row.version_id, row.chunk_ordinal, row.name, row.target, row.type, row.description, row.keywords)
        for row in mentions
    ]
    for part in split(rows, value_bytes):
        columns = (list(column) for column in zip(*part, strict=True))
        yield Statement(_INSERT, (ref.tenant_id, ref.workspace_id, *columns))


def delete_mentions(ref: WorkspaceRef, version_ids: Sequence[UUID]) -> Statement:
    """The statement that forgets what these versions said."""
    return Statement(_DELETE, (ref.tenant_id, ref.workspace_id, list(version_ids)))


def forget_mentions_of(ref: WorkspaceRef, names: Iterable[str]) -> Statement:
    """The statement that forgets what was said of these entities and of their relations."""
    return Statement(_FORGET, (ref.tenant_id, ref.workspace_id, sorted(names)))


def forget_mentions_between(ref: WorkspaceRef, one: str, other: str) -> Statement:
    """The statement that forgets what was said of one relation."""
    return Statement(_FORGET_BETWEEN, (ref.tenant_id, ref.workspace_id, one, other))


def _mention(record: Mapping[str, Any], name: str, target: str | None) -> Mention:
    version, _, ordinal = record["source_id"].rpartition(_CHUNK)
    return Mention(
        version_id=UUID(version),
        chunk_ordinal=int(ordinal),
        name=name,
        target=target,
        type=record.get("entity_type"),
        description=record["description"],
        keywords=record.get("keywords"),
    )
