"""Which concepts of a theme are its label: names and titles that most of it is about, as the texts write them. Pure.

A label is a list of terms, best first. More are kept than are shown, for one is passed over when no trusted passage
holds it any more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from app.retrieval.themes.building import DraftConcept, DraftTheme
from app.text.concepts.calendar import is_date
from app.text.concepts.extraction import ConceptKind, normal_form
from app.text.concepts.stems import without_ending
from app.text.concepts.stopwords import FUNCTION_WORDS, STOP_WORDS

LABEL_TERMS = 8
"""Terms kept of a label; three of them are shown."""
SHOWN_TERMS = 3
CANDIDATES = 30

# Plain lower-case words of scripts with capitals: many are verbs and adjectives, and names say more.
_WORD_WORTH = 0.3
_TITLE_WORTH = 3.0
_PROMINENT_WORTH = 0.5
_LONG_WORTH = 0.4
_MOST_WORDS = 4
_JOINING = frozenset({"and", "&", "und", "et", "y", "или", "и"})
# A longer name takes the place of a part of it that it covers so much of.
_COVERS = 0.4
# Of the longer of two words, what they have to share to be forms of one.
_SAME_BEGINNING = 0.7
_MIN_BEGINNING = 4
_MIN_LETTERS = 3
# A term that less of a theme holds than this is no name for it while there are others.
_MIN_COVER = 0.15


@dataclass(frozen=True)
class Term:
    """A candidate with how it is written."""

    key: int
    surface: str
    score: float
    df: int

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(normal_form(self.surface).split())


@dataclass(frozen=True)
class Unnamed:
    """What a label is chosen from: a theme's size in passages, its parent by place, and its best concepts."""

    size: int
    parent: int | None
    importance: float
    ranked: Sequence[tuple[int, DraftConcept]]  # each with its rank by lift

    @property
    def concepts(self) -> list[DraftConcept]:
        return [concept for _, concept in self.ranked]


def unnamed(theme: DraftTheme) -> Unnamed:
    """The theme with the concepts whose surfaces have to be known to label it."""
    size = len(theme.passages)
    ranked = sorted(enumerate(theme.concepts), key=lambda item: (-_worth(item[1], size), item[1].key))
    return Unnamed(size, theme.parent, theme.importance.importance, ranked[:CANDIDATES])


def label_terms(theme: Unnamed, surfaces: Mapping[int, str], taken: frozenset[int] = frozenset()) -> list[Term]:
    """At most `LABEL_TERMS` terms, best first; one that is `taken`, the first term of a sibling, is not put first."""
    terms = [
        Term(concept.key, surface, _worth(concept, theme.size) * _form_worth(concept, surface), concept.df)
        for concept in theme.concepts
        if (surface := surfaces.get(concept.key)) is not None and _can_name(surface)
    ]
    terms.sort(key=lambda term: (-term.score, term.surface))
    chosen: list[Term] = []
    for term in terms:
        _take(chosen, term)
        if len(chosen) == LABEL_TERMS:
            break
    place = next((place for place, term in enumerate(chosen) if term.key not in taken), 0)
    return [chosen[place], *chosen[:place], *chosen[place + 1 :]] if chosen else []


def _take(chosen: list[Term], term: Term) -> None:
    """Add the term, or put it in the place of a part of it, or leave it out where it says nothing new."""
    for place, other in enumerate(chosen):
        if _is_within(other.words, term.words) and term.df >= _COVERS * other.df:
            chosen[place] = term
            return
        if _is_within(term.words, other.words) or _is_within(other.words, term.words) or _are_forms(term, other):
            return
    chosen.append(term)


def _worth(concept: DraftConcept, size: int) -> float:
    """Lift, more for what covers the theme, and most for the title of its documents."""
    cover = concept.df / size if size else 0.0
    worth = concept.lift * sqrt(cover) * (1 + _TITLE_WORTH * concept.titles / size)
    worth *= 1 + _PROMINENT_WORTH * concept.prominent / concept.df
    return worth if cover >= _MIN_COVER else worth * cover


def _form_worth(concept: DraftConcept, surface: str) -> float:
    if concept.kind == int(ConceptKind.WORD) and not _is_caseless(surface):
        return _WORD_WORTH
    words = surface.split()
    # Two names that stand together once, or a name with a title before it.
    return _LONG_WORTH if len(words) > _MOST_WORDS or not _JOINING.isdisjoint(word.lower() for word in words) else 1.0


def _can_name(surface: str) -> bool:
    normal = normal_form(surface)
    if not _is_caseless(surface) and sum(char.isalpha() for char in surface) < _MIN_LETTERS:
        return False
    return (
        sum(char.isalpha() for char in surface) > sum(char.isdecimal() for char in surface)
        and normal not in STOP_WORDS
        and normal not in FUNCTION_WORDS
        and not is_date(normal)
    )


def _is_within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether the words of `part` follow each other in `whole`; texts without spaces are compared by their characters."""
    if len(part) == 1 and len(whole) == 1:
        return not part[0].isascii() and part[0].isalpha() and _is_caseless(part[0]) and part[0] in whole[0]
    return any(tuple(whole[start : start + len(part)]) == tuple(part) for start in range(len(whole) - len(part) + 1))


def _is_caseless(word: str) -> bool:
    return word.lower() == word.upper()


def _are_forms(first: Term, second: Term) -> bool:
    """Whether two terms are forms of the same words, as far as their beginnings tell."""
    if len(first.words) != len(second.words):
        return False
    return all(_same_word(one, other) for one, other in zip(first.words, second.words, strict=True))


def _same_word(one: str, other: str) -> bool:
    if without_ending(one) == without_ending(other):
        return True
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        shared += 1
    return shared >= _MIN_BEGINNING and shared >= _SAME_BEGINNING * max(len(one), len(other))


def label_all(themes: Sequence[Unnamed], surfaces: Mapping[int, str]) -> list[list[Term]]:
    """The labels of all themes, the most important first: siblings do not begin with the same term."""
    labels: list[list[Term]] = [[] for _ in themes]
    first_terms: dict[int | None, set[int]] = {}
    for place in sorted(range(len(themes)), key=lambda place: -themes[place].importance):
        taken = first_terms.setdefault(themes[place].parent, set())
        labels[place] = label_terms(themes[place], surfaces, frozenset(taken))
        taken.update(term.key for term in labels[place][:1])
    return labels
