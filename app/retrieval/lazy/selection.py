"""Which concepts of a passage are kept, in which order, and how one is written into a posting. Pure.

The order decides nothing but which concepts a smaller budget leaves out, so it is a rank on one scale for all kinds
and a query can read up to the rank it likes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.retrieval.lazy.parameters import CASELESS_CAP, MAX_RANK, NAME_CAP, WORD_FILL
from app.text.concepts.extraction import Concept, ConceptKind, extract_concepts
from app.text.sentences import split_sentences

MAX_SENTENCES = 62  # bits of a bigint besides the title's and the sign

_KIND_BITS = 0b11
_IN_TITLE = 1 << 2
_IS_TITLE = 1 << 3
_IN_FIRST = 1 << 4
_RANK_SHIFT = 5


@dataclass(frozen=True, slots=True)
class Mention:
    """A concept as one passage holds it."""

    key: int
    kind: ConceptKind
    in_title: bool
    is_title: bool
    in_first_sentence: bool
    rank: int  # of selection, from 0, below MAX_RANK
    sentences: int  # bit 0: title, bit i: sentence i, from 1
    surface: str

    @property
    def flags(self) -> int:
        """What of it stands in a posting, in 15 bits."""
        return (
            self.kind
            | (_IN_TITLE if self.in_title else 0)
            | (_IS_TITLE if self.is_title else 0)
            | (_IN_FIRST if self.in_first_sentence else 0)
            | self.rank << _RANK_SHIFT
        )


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


def select_mentions(title: str, heading_path: Sequence[str], passage: str) -> list[Mention]:
    """The concepts kept of a passage, best rank first."""
    sentences = split_sentences(passage)
    concepts = extract_concepts(sentences, title)
    above = {concept.key for concept in extract_concepts(heading_path)} if heading_path else set[int]()
    return [
        Mention(
            key=concept.key,
            kind=concept.kind,
            in_title=concept.in_title or concept.key in above,
            is_title=concept.is_title,
            in_first_sentence=bool(concept.sentences) and concept.sentences[0] == 0,
            rank=rank,
            sentences=_mask(concept, is_above=concept.in_title or concept.key in above),
            surface=concept.surface,
        )
        for rank, concept in _ranked(concepts, above)
    ]


def _ranked(concepts: Sequence[Concept], above: set[int]) -> list[tuple[int, Concept]]:
    def is_above(concept: Concept) -> bool:
        return concept.in_title or concept.key in above

    caseless = [concept for concept in concepts if concept.is_caseless and not concept.is_title]
    words = [c for c in concepts if c.kind is ConceptKind.WORD and not c.is_caseless and not c.is_title]
    names = [c for c in concepts if c.is_title or (not c.is_caseless and c.kind is not ConceptKind.WORD)]
    names.sort(key=lambda c: (not is_above(c), c.kind, -c.tf, c.sentences[:1], c.normal))
    caseless.sort(key=lambda c: (not is_above(c), -c.tf, -len(c.normal), c.normal))
    words.sort(key=lambda c: (not is_above(c), -len(c.normal), c.normal))
    ranked = [(place, concept) for place, concept in enumerate(names[:NAME_CAP])]
    ranked += [(place * MAX_RANK // CASELESS_CAP, concept) for place, concept in enumerate(caseless[:CASELESS_CAP])]
    # Plain words tell little; they only fill what a passage without names leaves empty.
    room = max(0, WORD_FILL - len(ranked))
    ranked += [
        (place * MAX_RANK // WORD_FILL, concept) for place, concept in enumerate(words[:room], start=len(ranked))
    ]
    ranked.sort(key=lambda item: (item[0], item[1].normal))
    return ranked


def _mask(concept: Concept, *, is_above: bool) -> int:
    mask = 1 if is_above else 0
    for sentence in concept.sentences:
        if sentence < MAX_SENTENCES:
            mask |= 1 << (sentence + 1)
    return mask
