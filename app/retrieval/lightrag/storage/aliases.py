"""What a name in a model's answer means: applied when raw answers are read, for inserts and for rebuilds alike.

The answers themselves stay as the model gave them, so that an alias that is taken back leaves no mark. Aliases are read
inside a unit, under the workspace's lease, and new spellings are written with it: the epoch keeps two writers apart.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from lightrag.operate import _rebuild_from_extraction_result

from app.retrieval.contract import Statement, WorkspaceRef
from app.retrieval.lightrag.names import entity_key
from app.retrieval.lightrag.storage.answer_lines import Line, regular_lines, wanted_part
from app.retrieval.lightrag.storage.commit import UnitDatabase
from app.retrieval.lightrag.storage.sql import split, value_bytes

# One chunk's entities by name and relations by pair, as LightRAG's parser gives them.
Extraction = tuple[Mapping[str, Sequence[Mapping[str, Any]]], Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]]
K = TypeVar("K")

# More links than any chain of merges has; a loop would end here, were there one.
MAX_CHAIN = 64

# What each key leads to in the end. Newest merges win: a merge makes its target an end again.
_RESOLVE = f"""
WITH RECURSIVE known AS (
  SELECT key, target, target_key, source FROM entity_aliases WHERE tenant_id = $1 AND workspace_id = $2 {{but}}
), chain AS (
  SELECT a.key AS wanted, a.target, a.target_key, a.source <> 'spelling' AS is_alias, a.key = a.target_key AS is_end, 1 AS link
    FROM known a WHERE a.key = ANY ($3)
  UNION ALL
  SELECT c.wanted, a.target, a.target_key, c.is_alias OR a.source <> 'spelling', a.key = a.target_key, c.link + 1
    FROM chain c JOIN known a ON a.key = c.target_key
   WHERE NOT c.is_end AND c.link < {MAX_CHAIN}
)
SELECT DISTINCT ON (wanted) wanted, target, is_alias FROM chain ORDER BY wanted, link DESC
"""  # noqa: S608 - put together from constants
RESOLVE = _RESOLVE.format(but="").replace("known AS (", "known AS NOT MATERIALIZED (")
# As it will be once some rows are others, or gone.
_RESOLVE_ANEW = _RESOLVE.format(
    but="""AND key <> ALL ($4::bytea[])
  UNION ALL SELECT * FROM unnest($5::bytea[], $6::text[], $7::bytea[], $8::text[])"""
)

_SPLITS = """
SELECT key, version_id, chunk_ordinal, target FROM entity_splits WHERE tenant_id = $1 AND workspace_id = $2"""

_LEARN = """
INSERT INTO entity_aliases (tenant_id, workspace_id, key, alias, target, target_key, source)
SELECT $1, $2, u.key, u.name, u.name, u.key, 'spelling' FROM unnest($3::bytea[], $4::text[]) AS u (key, name)
ON CONFLICT (tenant_id, workspace_id, key) DO NOTHING"""

# Runs after the graph's own deletions: a spelling goes with its entity, an alias stays until somebody takes it back.
_FORGET = """
DELETE FROM entity_aliases a
 WHERE a.tenant_id = $1 AND a.workspace_id = $2 AND a.key = ANY ($3) AND a.source = 'spelling'
   AND NOT EXISTS (SELECT 1 FROM lightrag_graph_nodes n WHERE n.workspace = $4 AND n.id = a.target)"""

_resolver: ContextVar["NameResolver | None"] = ContextVar("engine_names", default=None)


@dataclass(frozen=True)
class AliasRow:
    """A row of `entity_aliases`."""

    key: bytes
    alias: str
    target: str
    target_key: bytes
    source: str
    change_id: UUID | None = None


# What a name means in one chunk, by the chunk's id and the key of the name.
Splits = Mapping[tuple[str, bytes], str]


@dataclass(frozen=True)
class Anew:
    """How names will be read once the operation is done: rows of aliases that it changes (None: removes), and the splits."""

    aliases: Mapping[bytes, AliasRow | None] = field(default_factory=dict)
    splits: Splits | None = None


class NameResolver:
    """The names of one operation. Inserts teach it spellings; whoever comes first gives an entity its name.

    `anew` is for operations that change what names mean, and read answers again under the new meaning.
    """

    def __init__(self, database: UnitDatabase, ref: WorkspaceRef, anew: Anew | None = None) -> None:
        self._database = database
        self._ref = ref
        self._anew = anew or Anew()
        self._known: dict[bytes, str | None] = {}
        self._learnt: dict[bytes, str] = {}
        self._splits: Splits | None = None

    async def resolve(self, names: Iterable[str], *, learn: bool = False) -> dict[str, str]:
        """What each name means, itself where nothing is known; with `learn`, from now on that."""
        keys = {name: entity_key(name) for name in names}
        missing = [key for key in dict.fromkeys(keys.values()) if key not in self._known]
        for part in split(missing, len):
            rows = await self._look_up(list(part))
            found = {row["wanted"]: row["target"] for row in rows}
            self._known |= {key: found.get(key) for key in part}
        if learn:
            for name, key in keys.items():
                if self._known[key] is None:
                    self._known[key] = self._learnt[key] = name
        return {name: self._known[key] or name for name, key in keys.items()}

    async def apply(self, chunks: Sequence[Extraction]) -> list[Extraction]:
        """The chunks' extractions under resolved names. Relations that would then join an entity to itself are left out."""
        ordered = sorted(chunks, key=_chunk_of)
        meant = await self.resolve(names_of(ordered), learn=True)
        splits = await self.splits()
        return [_renamed(chunk, _in_chunk(_chunk_of(chunk), meant, splits)) for chunk in chunks]

    async def rewrite(self, answers: Sequence[tuple[str, str]]) -> list[str]:
        """Raw answers, each given with its chunk, under resolved names, without what nobody asks about (`reading_about`).

        One in which no name changes keeps its words.
        """
        read = [await _read(answer) for _, answer in answers]
        meant = await self.resolve(chain(*(each.names for each in read)))
        splits = await self.splits()
        rewritten = []
        for (chunk, answer), found in zip(answers, read, strict=True):
            here = _in_chunk(chunk, meant, splits)
            if all(here[name] == name for name in found.names):
                rewritten.append(answer if found.lines is None else wanted_part(answer, found.lines))
            else:
                rewritten.append(_as_json(_renamed(await parsed(answer), here)))
        return rewritten

    async def meanings(self, chunk: str, names: Iterable[str]) -> Mapping[str, str]:
        """What these names mean in one chunk."""
        return _in_chunk(chunk, await self.resolve(names), await self.splits())

    async def splits(self) -> Splits:
        """What names mean in single chunks."""
        if self._splits is None:
            splits = self._anew.splits
            if splits is None:
                splits = await read_splits(self._database, self._ref)
            # What a part of a split became may mean another entity by now.
            meant = await self.resolve(splits.values())
            self._splits = {place: meant[target] for place, target in splits.items()}
        return self._splits

    def learning(self) -> Iterator[Statement]:
        """Statements that keep the spellings which were learnt."""
        for part in split(list(self._learnt.items()), value_bytes):
            keys, names = zip(*part, strict=True)
            yield Statement(_LEARN, (self._ref.tenant_id, self._ref.workspace_id, list(keys), list(names)))

    async def _look_up(self, keys: list[bytes]) -> Sequence[Any]:
        changed = self._anew.aliases
        if not changed:
            return await self._database.fetch(RESOLVE, self._ref.tenant_id, self._ref.workspace_id, keys)
        rows = [(row.key, row.target, row.target_key, row.source) for row in changed.values() if row is not None]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
        scope = self._ref.tenant_id, self._ref.workspace_id
        return await self._database.fetch(_RESOLVE_ANEW, *scope, keys, list(changed), *columns)


async def read_splits(database: UnitDatabase, ref: WorkspaceRef) -> Splits:
    """The splits of a workspace as they are kept."""
    rows = await database.fetch(_SPLITS, ref.tenant_id, ref.workspace_id)
    return {(f"{row['version_id']}-chunk-{row['chunk_ordinal']:03d}", row["key"]): row["target"] for row in rows}


@contextmanager
def resolved_names(database: UnitDatabase, ref: WorkspaceRef, anew: Anew | None = None) -> Iterator[NameResolver]:
    """Answers that are read inside are read under resolved names."""
    resolver = NameResolver(database, ref, anew)
    token = _resolver.set(resolver)
    try:
        yield resolver
    finally:
        _resolver.reset(token)


def current_names() -> NameResolver | None:
    """The resolver of the running operation, if it has one."""
    return _resolver.get()


def spelling(ref: WorkspaceRef, name: str) -> Statement:
    """The statement that keeps how an entity is spelt, unless one is known."""
    return Statement(_LEARN, (ref.tenant_id, ref.workspace_id, [entity_key(name)], [name]))


def forgetting(ref: WorkspaceRef, names: Iterable[str]) -> Statement:
    """The statement that drops the spellings of those of these entities that are gone."""
    keys = sorted({entity_key(name) for name in names})
    # In another store the nodes are out of this statement's reach; LightRAG keeps the chunks of each in step.
    forget = (
        _FORGET if ref.graph_store == "table" else _FORGET.replace("lightrag_graph_nodes", "lightrag_entity_chunks")
    )
    return Statement(forget, (ref.tenant_id, ref.workspace_id, keys, ref.engine_name))


async def parsed(answer: str) -> Extraction:
    """A raw answer, read by LightRAG's own parser, which knows both forms and repairs what models get wrong."""
    found: Extraction = await _rebuild_from_extraction_result(None, answer, "", 0, chunk_data={})
    return found


class _Answer(NamedTuple):
    names: Mapping[str, None]
    lines: Sequence[Line] | None  # where it has them


async def _read(answer: str) -> _Answer:
    lines = regular_lines(answer)
    names = names_of([await parsed(answer)]) if lines is None else dict.fromkeys(chain(*(line.names for line in lines)))
    return _Answer(names, lines)


async def names_in(answers: Iterable[str]) -> set[str]:
    """Every name that raw answers give."""
    return {name for answer in answers for name in (await _read(answer)).names}


def _chunk_of(chunk: Extraction) -> str:
    for records in (*chunk[0].values(), *chunk[1].values()):
        return str(records[0]["source_id"])
    return ""


def names_of(chunks: Iterable[Extraction]) -> dict[str, None]:
    """Every name once, in the order in which it was first said."""
    names: dict[str, None] = {}
    for entities, relations in chunks:
        names |= dict.fromkeys(entities)
        names |= dict.fromkeys(end for pair in relations for end in pair)
    return names


def _in_chunk(chunk: str, meant: Mapping[str, str], splits: Splits) -> Mapping[str, str]:
    """What the names mean in this chunk."""
    if not splits:
        return meant
    found = {}
    for name, end in meant.items():
        # By the name itself too: what it means may have changed since the split.
        keys = entity_key(name), entity_key(end)
        own = next((key for key in keys if (chunk, key) in splits), None)
        found[name] = end if own is None else _followed(chunk, own, splits)
    return found


def _followed(chunk: str, key: bytes, splits: Splits) -> str:
    """What the name with this key became, for a part may have been split again. A loop would end."""
    seen = {key}
    while True:
        meant = splits[chunk, key]
        key = entity_key(meant)
        if key in seen or (chunk, key) not in splits:
            return meant
        seen.add(key)


def _renamed(chunk: Extraction, meant: Mapping[str, str]) -> Extraction:
    entities, relations = chunk
    if all(meant[name] == name for name in names_of([chunk])):
        return chunk
    return (
        _regrouped(entities, lambda name: meant[name], lambda name: {"entity_name": name}),
        _regrouped(
            {pair: records for pair, records in relations.items() if meant[pair[0]] != meant[pair[1]]},
            lambda pair: (meant[pair[0]], meant[pair[1]]),
            lambda pair: {"src_id": pair[0], "tgt_id": pair[1]},
        ),
    )


def _regrouped(
    records: Mapping[K, Sequence[Mapping[str, Any]]], key_of: Callable[[K], K], fields: Callable[[K], dict[str, str]]
) -> dict[K, list[Mapping[str, Any]]]:
    found: defaultdict[K, list[Mapping[str, Any]]] = defaultdict(list)
    for key, said in records.items():
        found[key_of(key)] += [{**record, **fields(key_of(key))} for record in said]
    return dict(found)


def _as_json(chunk: Extraction) -> str:
    """The form that LightRAG reads as an answer in JSON mode; it undoes HTML entities once more."""
    entities, relations = chunk
    return json.dumps(
        {
            "entities": [
                {
                    "name": _safe(record["entity_name"]),
                    "type": _safe(record["entity_type"]),
                    "description": _safe(record["description"]),
                }
                for said in entities.values()
                for record in said
            ],
            "relationships": [
                {
                    "source": _safe(record["src_id"]),
                    "target": _safe(record["tgt_id"]),
                    "keywords": _safe(record["keywords"]),
                    "description": _safe(record["description"]),
                }
                for said in relations.values()
                for record in said
            ],
        },
        ensure_ascii=False,
    )


def _safe(text: str) -> str:
    return text.replace("&", "&amp;")
