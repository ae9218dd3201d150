"""LightRAG's entities and relations as evidence: trusted support, texts that trusted versions said, token budgets."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from app.retrieval.contract import EntityEvidence, RelationEvidence, Source
from app.retrieval.lightrag.fusion import RRF_K
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.support_store import Said, Support, Supported, SupportStore, relation_key
from app.text.tokens import count_again

Item = TypeVar("Item")
Row = Mapping[str, Any]

_NOTHING = Said("", "")


async def graph_evidence(
    store: SupportStore, entities: Sequence[Row], relations: Sequence[Row]
) -> tuple[list[EntityEvidence], list[RelationEvidence]]:
    """Those entities and relations (LightRAG's rows) that a trusted version supports, in their order."""
    names = [row["entity_name"] for row in entities]
    keys = [relation_key(row["src_id"], row["tgt_id"]) for row in relations]
    return await composed(store, await store.support(names, keys), entities, relations)


async def composed(
    store: SupportStore, support: Supported, entities: Sequence[Row], relations: Sequence[Row]
) -> tuple[list[EntityEvidence], list[RelationEvidence]]:
    """The same, where it is known what stands behind them. What others spoke of too is told by the mentions of those that
    may be used alone; with the weight of what they say, which for a relation is the number of chunks."""
    keys = [relation_key(row["src_id"], row["tgt_id"]) for row in relations]
    both = (support.entities, support.relations)
    said = await store.said_of([key for found in both for key, each in found.items() if each.is_mixed])
    return _entities(entities, support.entities, said), _relations(relations, keys, support.relations, said)


def _entities(rows: Sequence[Row], support: Mapping[str, Support], said: Mapping[str, Said]) -> list[EntityEvidence]:
    evidence = []
    for rank, row in enumerate(rows, 1):
        name = row["entity_name"]
        if name not in support:
            continue
        kind, description = row["entity_type"], plain_text(row["description"])
        if support[name].is_mixed:
            own = said.get(name, _NOTHING)
            kind, description = own.type or "UNKNOWN", own.description
        evidence.append(
            EntityEvidence(
                name=name,
                type=kind,
                description=description,
                document_ids=support[name].document_ids,
                sources=row.get("sources") or (Source("entities", rank),),
                is_partial=support[name].is_partial,
                score=1 / (RRF_K + rank),
            )
        )
    return evidence


def _relations(
    rows: Sequence[Row], keys: Sequence[str], support: Mapping[str, Support], said: Mapping[str, Said]
) -> list[RelationEvidence]:
    evidence = []
    for rank, (key, row) in enumerate(zip(keys, rows, strict=True), 1):
        if key not in support:
            continue
        description, keywords, weight = plain_text(row["description"]), row["keywords"], float(row["weight"])
        if support[key].is_mixed:
            own = said.get(key, _NOTHING)
            description, keywords, weight = own.description, own.keywords, float(own.weight)
        evidence.append(
            RelationEvidence(
                source=row["src_id"],
                target=row["tgt_id"],
                description=description,
                keywords=keywords,
                weight=weight,
                document_ids=support[key].document_ids,
                sources=row.get("sources") or (Source("relations", rank),),
                is_partial=support[key].is_partial,
                score=1 / (RRF_K + rank),
            )
        )
    return evidence


def plain_text(blended: str) -> str:
    """A description of LightRAG's, which joins what several chunks said by a separator of its own; a line for each."""
    return blended.replace(SEPARATOR, "\n")


def within_tokens(items: Sequence[Item], text_of: Callable[[Item], str], limit: int) -> list[Item]:
    """The first items that fit, whole, into `limit` tokens."""
    taken = []
    for item in items:
        limit -= count_again(text_of(item))
        if limit < 0:
            break
        taken.append(item)
    return taken
