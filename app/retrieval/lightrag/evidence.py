"""LightRAG's entities and relations as evidence: trusted support, texts that trusted versions said, token budgets."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from app.retrieval.contract import EntityEvidence, RelationEvidence, Source
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.support_store import Said, Support, SupportStore, relation_key
from app.text.tokens import count_again

Item = TypeVar("Item")
Row = Mapping[str, Any]


async def graph_evidence(
    store: SupportStore, entities: Sequence[Row], relations: Sequence[Row]
) -> tuple[list[EntityEvidence], list[RelationEvidence]]:
    """Those entities and relations (LightRAG's rows) that a trusted version supports, in their order."""
    names = [row["entity_name"] for row in entities]
    keys = [relation_key(row["src_id"], row["tgt_id"]) for row in relations]
    support = await store.support(names, keys)
    said = await store.said_of([key for found in support for key, each in found.items() if each.is_mixed])
    return _entities(entities, support[0], said), _relations(relations, keys, support[1], said)


def _entities(rows: Sequence[Row], support: Mapping[str, Support], said: Mapping[str, Said]) -> list[EntityEvidence]:
    evidence = []
    for rank, row in enumerate(rows, 1):
        name = row["entity_name"]
        if name not in support:
            continue
        description = plain_text(row["description"])
        if support[name].is_mixed:
            description = said[name].description if name in said else ""
        evidence.append(
            EntityEvidence(
                name=name,
                type=row["entity_type"],
                description=description,
                document_ids=support[name].document_ids,
                sources=(Source("entities", rank),),
                is_partial=support[name].is_partial,
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
        description, keywords = plain_text(row["description"]), row["keywords"]
        if support[key].is_mixed:
            own = said.get(key)
            description, keywords = (own.description, own.keywords) if own else ("", "")
        evidence.append(
            RelationEvidence(
                source=row["src_id"],
                target=row["tgt_id"],
                description=description,
                keywords=keywords,
                weight=float(row["weight"]),
                document_ids=support[key].document_ids,
                sources=(Source("relations", rank),),
                is_partial=support[key].is_partial,
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
