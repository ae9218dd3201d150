"""Finds entities, relations and chunks for a question in the order in which LightRAG's context call would give them.

The five modes, the budgets that cut what is found, and the choice of chunks are LightRAG's (facts, section 5); only the
way to the rows is ours. The functions that order and choose do no I/O.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeVar

from lightrag.utils import pick_by_weighted_polling

from app.providers.contract import Vectors
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.reads import together
from app.retrieval.lightrag.search_store import GraphReader, Row
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
    """What was found, best first; chunks by their ids in the engine."""

    entities: Sequence[Row] = ()
    relations: Sequence[Row] = ()
    chunks: Sequence[str] = ()


@dataclass(frozen=True)
class Probes:
    """The vectors of the question and of its two kinds of keywords, as far as the mode wants them."""

    question: Vectors
    low: Vectors | None = None
    high: Vectors | None = None


async def find(reader: GraphReader, mode: str, probes: Probes, wanted: Wanted) -> Found:
    """What `mode` finds. The branches of a mode are asked side by side."""
    near_chunks = reader.nearest_chunks(probes.question, wanted.chunks) if mode in ("naive", "mix") else _nothing()
    near, around, (linked, ends) = await together(
        near_chunks, _around_entities(reader, probes.low, wanted), _around_relations(reader, probes.high, wanted)
    )
    entities, relations = around
    entities = within_budget(
        alternate([entities, ends], lambda row: row["entity_name"]), _entity_line, wanted.entity_tokens
    )
    relations = within_budget(alternate([relations, linked], _pair), _relation_line, wanted.relation_tokens)
    of_entities = choose_chunks(entities)
    of_relations = choose_chunks(relations, but=set(of_entities))
    return Found(entities, relations, alternate([near, of_entities, of_relations], lambda name: name)[: wanted.chunks])


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


def choose_chunks(rows: Sequence[Mapping[str, Any]], *, but: set[str] | None = None) -> list[str]:
    """The chunks that speak of these entities or relations: more of the first ones, those first that speak of many.

    Relations are given the chunks that entities chose already, in `but`; one that has no other chunk to lend than those
    and those of earlier relations takes no turn, while an entity does.
    """
    named = [
        [chunk for chunk in row["source_id"].split(SEPARATOR) if chunk and (but is None or chunk not in but)]
        for row in rows
    ]
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
