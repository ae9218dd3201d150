"""Finds entities, relations and chunks for a question in the order in which LightRAG's context call would give them.

The five modes, the budgets that cut what is found, and the choice of chunks are LightRAG's (facts, section 5); only the
way to the rows is ours. The functions that order and choose do no I/O.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

from lightrag.utils import pick_by_weighted_polling

from app.providers.contract import Vectors
from app.retrieval.contract import Source
from app.retrieval.lightrag.reads import together
from app.retrieval.lightrag.search_store import GraphReader, Row
from app.retrieval.lightrag.support_store import NO_SUPPORT, Support, Supported, SupportStore, relation_key
from app.text.tokens import count_again

T = TypeVar("T")

# Chunks of the first entity or relation; the last one lends one.
RELATED_CHUNKS = 5
# No relation takes fewer tokens in the form that is counted: so many fit at most.
LEAST_RELATION_TOKENS = 16


@dataclass(frozen=True)
class Wanted:
    """How much is looked for."""

    top_k: int
    chunks: int
    entity_tokens: int
    relation_tokens: int


@dataclass(frozen=True)
class Found:
    """What was found, best first, and what stands behind it; chunks by their ids in the engine.

    Rows have their `sources`: which of the two ways to them found them, where.
    """

    entities: Sequence[Row] = ()
    relations: Sequence[Row] = ()
    chunks: Sequence[str] = ()
    support: Supported = NO_SUPPORT


@dataclass(frozen=True)
class Probes:
    """The vectors of the question and of its two kinds of keywords, as far as the mode wants them."""

    question: Vectors
    low: Vectors | None = None
    high: Vectors | None = None


async def find(reader: GraphReader, support: SupportStore, mode: str, probes: Probes, wanted: Wanted) -> Found:
    """What `mode` finds. The branches of a mode are asked side by side.

    Chunks are those that may be used of the entities and relations that such chunks stand behind.
    """
    near_chunks = reader.nearest_chunks(probes.question, wanted.chunks) if mode in ("naive", "mix") else _nothing()
    near, around, (linked, ends) = await together(
        near_chunks, _around_entities(reader, probes.low, wanted), _around_relations(reader, probes.high, wanted)
    )
    entities, relations = around
    entities = _merged({"entities": entities, "relation_ends": ends}, lambda row: row["entity_name"])
    relations = _merged({"entity_relations": relations, "relations": linked}, _pair)
    # What the graph says of all versions together is longer than what a filter leaves of it.
    if not reader.is_narrowed:
        entities = within_budget(entities, _entity_line, wanted.entity_tokens)
        relations = within_budget(relations, _relation_line, wanted.relation_tokens)
    keys = [relation_key(row["src_id"], row["tgt_id"]) for row in relations]
    behind = await support.support([row["entity_name"] for row in entities], keys)
    of_entities = choose_chunks(_chunks(behind.entities, [row["entity_name"] for row in entities]))
    of_relations = choose_chunks(_chunks(behind.relations, keys), but=set(of_entities))
    chunks = alternate([near, of_entities, of_relations], lambda name: name)[: wanted.chunks]
    return Found(entities, relations, chunks, behind)


def _merged(legs: Mapping[str, Sequence[Row]], key: Callable[[Row], Hashable]) -> list[Row]:
    """The rows of all legs in turns, each with every place at which a leg has it."""
    sources: dict[Hashable, list[Source]] = {}
    for leg, rows in legs.items():
        for rank, row in enumerate(rows, 1):
            sources.setdefault(key(row), []).append(Source(leg, rank, row.get("score")))
    return [row | {"sources": tuple(sources[key(row)])} for row in alternate(legs.values(), key)]


def _chunks(support: Mapping[str, Support], names: Iterable[str]) -> list[Sequence[str]]:
    return [support[name].chunks for name in names if name in support]


async def _around_entities(
    reader: GraphReader, vector: Vectors | None, wanted: Wanted
) -> tuple[Sequence[Row], Sequence[Row]]:
    """Entities near the names that were asked for, and their relations."""
    if vector is None:
        return (), ()
    entities = await reader.nearest_entities(vector, wanted.top_k)
    limit = wanted.relation_tokens // LEAST_RELATION_TOKENS + 1
    return entities, await reader.relations_of([row["entity_name"] for row in entities], limit)


async def _around_relations(
    reader: GraphReader, vector: Vectors | None, wanted: Wanted
) -> tuple[Sequence[Row], Sequence[Row]]:
    """Relations near the themes that were asked for, and the entities at their ends."""
    if vector is None:
        return (), ()
    relations = await reader.nearest_relations(vector, wanted.top_k)
    names = dict.fromkeys(name for row in relations for name in (row["src_id"], row["tgt_id"]))
    return relations, await reader.entities(list(names))


async def _nothing() -> list[str]:
    return []


def alternate(lists: Iterable[Sequence[T]], key: Callable[[T], Hashable]) -> list[T]:
    """The first of each list, then the second of each, and so on; of equal ones the first."""
    found: dict[Hashable, T] = {}
    for row in zip_longest(*lists):
        for item in row:
            if item is not None:
                found.setdefault(key(item), item)
    return list(found.values())


def within_budget(rows: Sequence[Row], line: Callable[[Row], str], limit: int) -> list[Row]:
    """The first rows whose lines fit into `limit` tokens together, whole."""
    taken = []
    for row in rows:
        # With its line break: token boundaries never cross it, so the counts of lines add up to that of the whole.
        limit -= count_again(f"{line(row)}\n")
        if limit < 0:
            break
        taken.append(row)
    return taken


def choose_chunks(named: Sequence[Sequence[str]], *, but: set[str] | None = None) -> list[str]:
    """The chunks that speak of entities or relations, given by each: more of the first ones, those first that speak of many.

    Relations are given the chunks that entities chose already, in `but`; one that has no other chunk to lend than those
    and those of earlier relations takes no turn, while an entity does.
    """
    named = [[chunk for chunk in chunks if but is None or chunk not in but] for chunks in named]
    counts = Counter(chunk for chunks in named for chunk in chunks)
    seen: set[str] = set()
    lenders = []
    for chunks in named:
        own = [chunk for chunk in dict.fromkeys(chunks) if chunk not in seen]
        seen.update(own)
        if own or (chunks and but is None):
            lenders.append({"sorted_chunks": sorted(own, key=lambda chunk: -counts[chunk])})
    return list(dict.fromkeys(pick_by_weighted_polling(lenders, RELATED_CHUNKS, min_related_chunks=1)))


def _pair(row: Row) -> tuple[str, str]:
    one, other = row["src_id"], row["tgt_id"]
    return (one, other) if one <= other else (other, one)


def _entity_line(row: Row) -> str:
    return json.dumps(
        {"entity": row["entity_name"], "type": row["entity_type"], "description": row["description"]},
        ensure_ascii=False,
    )


def _relation_line(row: Row) -> str:
    return json.dumps(
        {"entity1": row["src_id"], "entity2": row["tgt_id"], "description": row["description"]}, ensure_ascii=False
    )
