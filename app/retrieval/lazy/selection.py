"""Which concepts of a passage are kept, in which order, and how one is written into a posting. Pure.

The order decides nothing but which concepts a smaller budget leaves out, so it is a rank on one scale for all kinds
and a query can read up to the rank it likes.
"""

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from app.retrieval.lazy.parameters import CASELESS_CAP, MAX_RANK, NAME_CAP, WORD_FILL
from app.text.concepts.extraction import Concept, ConceptKind, concepts_of, extract_concepts
from app.text.concepts.stopwords import FUNCTION_WORDS
from app.text.concepts.words import Sentence, normalise

MAX_SENTENCES = 62  # bits of a bigint besides the title's and the sign

_KIND_BITS = 0b11
_IN_TITLE = 1 << 2
_IS_TITLE = 1 << 3
_IN_FIRST = 1 << 4
_RANK_SHIFT = 5
_RANK_BITS = 0x1FF
_IS_LEAD = 1 << 14
NAMING_FLAGS = _IS_TITLE | _IS_LEAD
"""Flags of which one is set where a passage is about the concept, as far as its form tells."""

# A paragraph's first words are looked for within this many characters.
_LEAD_CHARS = 120


class Mention(NamedTuple):
    """A concept as one passage holds it, in the form in which it is stored."""

    key: int
    flags: int  # what of it stands in a posting, in 15 bits: see the functions below
    sentences: int  # bit 0: title and headings, bit i: sentence i, from 1
    surface: str


def is_title(flags: int) -> bool:
    """Whether the concept is the whole title of the passage's document."""
    return bool(flags & _IS_TITLE)


def is_lead(flags: int) -> bool:
    """Whether a paragraph of the passage begins with the concept, which is what untitled text has for a title."""
    return bool(flags & _IS_LEAD)


def is_prominent(flags: int) -> bool:
    """Whether the concept stands in the title or in the first sentence of a paragraph."""
    return bool(flags & (_IN_TITLE | _IN_FIRST))


def kind_of(flags: int) -> int:
    return flags & _KIND_BITS


def rank_of(flags: int) -> int:
    return flags >> _RANK_SHIFT & _RANK_BITS


def select_mentions(title: str, heading_path: Sequence[str], passage: Sequence[Sentence]) -> list[Mention]:
    """The concepts kept of a passage, best rank first."""
    concepts = concepts_of(passage, title)
    above = _heading_keys(tuple(heading_path))
    firsts = {place for place, sentence in enumerate(passage) if sentence.starts_paragraph}
    leads = _lead_keys({place: _beginnings(passage[place]) for place in firsts}, concepts)
    mentions: list[Mention] = []
    new = tuple.__new__
    for rank, concept in _ranked(concepts, above):
        key, held = concept.key, concept.sentences
        flags = concept.kind | rank << _RANK_SHIFT
        mask = 0
        if concept.in_title or key in above:
            flags |= _IN_TITLE
            mask = 1
        if concept.is_title:
            flags |= _IS_TITLE
        if key in leads:
            flags |= _IS_LEAD
        if not firsts.isdisjoint(held):
            flags |= _IN_FIRST
        for sentence in held:
            if sentence < MAX_SENTENCES:
                mask |= 2 << sentence
        mentions.append(new(Mention, (key, flags, mask, concept.surface)))
    return mentions


@lru_cache(maxsize=1024)
def _heading_keys(heading_path: tuple[str, ...]) -> frozenset[int]:
    return frozenset(concept.key for concept in extract_concepts(heading_path))


def _lead_keys(starts: Mapping[int, Sequence[str]], concepts: Sequence[Concept]) -> set[int]:
    """The concepts that paragraphs begin with, the longest for each; a function word may stand before it.

    `starts` are the beginnings of the first sentences of paragraphs, by the sentence's place.
    """
    leads: set[int] = set()
    for place, beginnings in starts.items():
        longest: Concept | None = None
        for start in beginnings:
            for concept in concepts:
                normal = concept.normal
                if not start.startswith(normal) or place not in concept.sentences or not _ends_there(start, concept):
                    continue
                if longest is None or len(normal) > len(longest.normal):
                    longest = concept
        if longest is not None:
            leads.add(longest.key)
    return leads


def _beginnings(sentence: Sentence) -> list[str]:
    """How a sentence begins in normal form: as it stands and, after a function word, behind it."""
    found = [token.lexeme.normal for token in sentence.tokens[:1]]
    cuts = [token.start for token in sentence.tokens[: 2 if found and found[0] in FUNCTION_WORDS else 1]]
    return [normalise(sentence.text[cut : cut + _LEAD_CHARS]) for cut in cuts]


def _ends_there(start: str, concept: Concept) -> bool:
    after = start[len(concept.normal) : len(concept.normal) + 1]
    return concept.is_caseless or not after.isalnum()


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
