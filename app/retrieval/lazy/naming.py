"""Passages that are about what the question names: their title is a name or phrase of it, or a paragraph begins with one.

The two legs see words only. That the words of a question are a title tells more than that a passage holds them. Pure.
"""

from collections.abc import Iterable, Mapping

from app.retrieval.lazy.parameters import NAMED_PASSAGES, NAMED_SHARE
from app.retrieval.lazy.store import Postings
from app.text.concepts.extraction import Concept, ConceptKind


def naming_keys(concepts: Iterable[Concept]) -> list[int]:
    """The concepts of a question that may be a title; single words say too little."""
    return [concept.key for concept in concepts if concept.kind is not ConceptKind.WORD]


def named_passages(postings: Postings) -> set[int]:
    """Those that a name leads to. A name with more of them than `NAMED_PASSAGES` does not tell which is meant."""
    return {passage_id for found in postings.values() if len(found) <= NAMED_PASSAGES for passage_id, _ in found}


def lift_named(plain: Mapping[int, float], named: Iterable[int]) -> dict[int, float]:
    """The plain ranking with the named passages lifted, best first."""
    scores = dict(plain)
    for passage_id in named:
        scores[passage_id] = scores.get(passage_id, 0.0) + NAMED_SHARE
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
