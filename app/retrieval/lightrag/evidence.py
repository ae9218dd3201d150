"""LightRAG's entities and relations as evidence: trusted support, texts that trusted versions said, token budgets."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from app.retrieval.contract import EntityEvidence, RelationEvidence, Source
from app.retrieval.lightrag.graph_store import SEPARATOR
from app.retrieval.lightrag.support_store import SupportStore, relation_key
from app.text.tokens import count_again

Item = TypeVar("Item")


async def entity_evidence(store: SupportStore, rows: Sequence[dict[str, Any]]) -> list[EntityEvidence]:
    """Those of `rows` that a trusted version supports, in their order."""
    support = await store.of_entities([row["entity_name"] for row in rows])
    said = await store.said_of([name for name, found in support.items() if found.is_mixed])
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


async def relation_evidence(store: SupportStore, rows: Sequence[dict[str, Any]]) -> list[RelationEvidence]:
    """Those of `rows` (LightRAG's relationships) that a trusted version supports, in their order."""
    keys = [relation_key(row["src_id"], row["tgt_id"]) for row in rows]
    support = await store.of_relations(keys)
    said = await store.said_of([key for key, found in support.items() if found.is_mixed])
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
