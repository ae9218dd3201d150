"""Which concepts of a passage are kept, in which order, and how one is written into a posting. Pure.

The order decides nothing but which concepts a smaller budget leaves out, so it is a rank on one scale for all kinds
and a query can read up to the rank it likes.
"""

from collections.abc import Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from app.retrieval.lazy.parameters import CASELESS_CAP, MAX_RANK, NAME_CAP, WORD_FILL
from app.text.concepts.extraction import Concept, ConceptKind, concepts_of, extract_concepts
from app.text.concepts.words import Sentence

MAX_SENTENCES = 62  # bits of a bigint besides the title's and the sign

_KIND_BITS = 0b11
_IN_TITLE = 1 << 2
_IS_TITLE = 1 << 3
_IN_FIRST = 1 << 4
_RANK_SHIFT = 5


class Mention(NamedTuple):
    """A concept as one passage holds it, in the form in which it is stored."""

    key: int
    flags: int  # what of it stands in a posting, in 15 bits: see the functions below
    sentences: int  # bit 0: title and headings, bit i: sentence i, from 1
    surface: str


def is_title(flags: int) -> bool:
    """Whether the concept is the whole title of the passage's document."""
    return bool(flags & _IS_TITLE)


def is_prominent(flags: int) -> bool:
    """Whether the concept stands in the title or the first sentence."""
    return bool(flags & (_IN_TITLE | _IN_FIRST))


def kind_of(flags: int) -> int:
    return flags & _KIND_BITS


def rank_of(flags: int) -> int:
    return flags >> _RANK_SHIFT


def select_mentions(title: str, heading_path: Sequence[str], passage: Sequence[Sentence]) -> list[Mention]:
    """The concepts kept of a passage, best rank first."""
    concepts = concepts_of(passage, title)
    above = _heading_keys(tuple(heading_path))
    mentions = []
    for rank, concept in _ranked(concepts, above):
        flags = concept.kind | rank << _RANK_SHIFT
        mask = 0
        if concept.in_title or concept.key in above:
            flags |= _IN_TITLE
            mask = 1
        if concept.is_title:
            flags |= _IS_TITLE
        held = concept.sentences
        if held and held[0] == 0:
            flags |= _IN_FIRST
        for sentence in held:
            if sentence < MAX_SENTENCES:
                mask |= 2 << sentence
        mentions.append(Mention(concept.key, flags, mask, concept.surface))
    return mentions


@lru_cache(maxsize=1024)
def _heading_keys(heading_path: tuple[str, ...]) -> frozenset[int]:
    return frozenset(concept.key for concept in extract_concepts(heading_path))


def _ranked(concepts: Sequence[Concept], above: Set[int]) -> list[tuple[int, Concept]]:
    names, caseless, words = [], [], []
    for concept in concepts:
        is_below = not (concept.in_title or concept.key in above)
        normal = concept.normal
        if concept.is_title or (not concept.is_caseless and concept.kind is not ConceptKind.WORD):
            names.append((is_below, concept.kind, -concept.tf, concept.sentences[:1], normal, concept))
        elif concept.is_caseless:
            caseless.append((is_below, -concept.tf, -len(normal), normal, concept))
        else:
            words.append((is_below, -len(normal), normal, concept))
    names.sort()
    caseless.sort()
    ranked = [(place, found[-1]) for place, found in enumerate(names[:NAME_CAP])]
    ranked += [(place * MAX_RANK // CASELESS_CAP, found[-1]) for place, found in enumerate(caseless[:CASELESS_CAP])]
    # Plain words tell little; they only fill what a passage without names leaves empty.
    taken = len(ranked)
    if taken < WORD_FILL:
        words.sort()
        ranked += [
            (place * MAX_RANK // WORD_FILL, found[-1])
            for place, found in enumerate(words[: WORD_FILL - taken], start=taken)
        ]
    ranked.sort(key=lambda item: (item[0], item[1].normal))
    return ranked
