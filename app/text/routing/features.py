"""Reads the form of a question: what it names, which cues it has, and which kind of question that makes it. Pure."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from app.text.concepts.extraction import Concept, ConceptKind, extract_concepts
from app.text.concepts.stopwords import FUNCTION_WORDS, STOP_WORDS
from app.text.concepts.terms import terms
from app.text.concepts.words import Script, normalise, script_of
from app.text.languages import detect_language
from app.text.routing.cues import (
    CLAUSES,
    COMPARES,
    GENITIVES,
    LANGUAGES,
    MATERIAL,
    RELATES,
    ROLES,
    SPECIFIC,
    SURVEYS,
    Cues,
)

MAX_CHARS: Final = 2_000  # the form of a question stands at its beginning and its end is rarely this far away
_FIRST_WORD_CHARS: Final = 5  # a question word at the beginning opens no clause
_GAP: Final = r"\b.{0,60}?\b"
_UNSPACED: Final = (Script.CJK, Script.UNSPACED)
_WORD: Final = re.compile(r"\w+")
# German relative clauses begin with an article behind a comma.
_ARTICLE_CLAUSE: Final = re.compile(r",\s*(?:in|aus|von|mit|bei|an|auf|für)?\s*(?:der|die|das|dem|den)\b")


class QuestionKind(StrEnum):
    """What somebody wants to know."""

    FACT = "fact"
    RELATION = "relation"
    MULTI_HOP = "multi_hop"
    COMPARISON = "comparison"
    CORPUS_WIDE = "corpus_wide"


@dataclass(frozen=True)
class QuestionFeatures:
    """Counts, as found in the first `MAX_CHARS` characters of a question.

    `terms`: distinct words that matter; `names`, `numbers`, `identifiers`: distinct ones; `aimless`: 1 if it has words about
    texts as such, and no others; the others count cues.
    """

    language: str
    terms: int
    names: int
    numbers: int
    identifiers: int
    compares: int
    relates: int
    surveys: int
    roles: int
    clauses: int
    genitives: int
    aimless: int

    @property
    def counts(self) -> Mapping[str, int | str]:
        """All of them, for an answer to show."""
        return asdict(self)


# Points of a kind for each count of a feature, up to so many; the kind with most points is meant. FACT is what is left.
_BIAS: Final[Mapping[QuestionKind, float]] = {
    QuestionKind.FACT: 1.0,
    QuestionKind.RELATION: 0.0,
    QuestionKind.MULTI_HOP: -0.6,
    QuestionKind.COMPARISON: 0.0,
    QuestionKind.CORPUS_WIDE: 0.0,
}
_POINTS: Final[Mapping[QuestionKind, Mapping[str, tuple[float, int]]]] = {
    QuestionKind.FACT: {"numbers": (0.2, 1), "identifiers": (0.3, 1)},
    QuestionKind.RELATION: {"relates": (1.5, 2), "names": (0.1, 3)},
    QuestionKind.MULTI_HOP: {"clauses": (1.3, 2), "roles": (0.9, 1), "genitives": (0.4, 3), "terms": (0.08, 10)},
    QuestionKind.COMPARISON: {"compares": (2.5, 2), "names": (0.05, 2)},
    QuestionKind.CORPUS_WIDE: {
        "surveys": (2.0, 2),
        "aimless": (2.0, 1),
        "names": (-0.25, 4),
        "numbers": (-0.5, 2),
        "identifiers": (-0.5, 2),
    },
}


def read_features(query: str) -> QuestionFeatures:
    """The features of a question in any language; cues are known of seven."""
    text = query[:MAX_CHARS]
    plain = unicodedata.normalize("NFKC", text).casefold().strip()
    language = detect_language(text)
    concepts = extract_concepts([text])
    names = [concept for concept in concepts if concept.kind is ConceptKind.NAME and not _is_part(concept, concepts)]
    identifiers = [concept for concept in names if any(char.isdecimal() for char in concept.normal)]
    own = (language,) if language in LANGUAGES else ()
    clauses = _count(CLAUSES, own, plain[_FIRST_WORD_CHARS:])
    if language == "de":
        clauses += len(_ARTICLE_CLAUSE.findall(plain))
    return QuestionFeatures(
        language=language,
        terms=len(set(terms(text))),
        names=len(names) - len(identifiers),
        numbers=sum(concept.kind is ConceptKind.NUMBER for concept in concepts),
        identifiers=len(identifiers),
        compares=_count(COMPARES, LANGUAGES, plain),
        relates=_count(RELATES, LANGUAGES, plain),
        surveys=_count(SURVEYS, LANGUAGES, plain),
        roles=_count(ROLES, LANGUAGES, plain),
        clauses=clauses,
        genitives=_count(GENITIVES, own, plain),
        aimless=int(_is_aimless(plain)),
    )


def rank_kinds(features: QuestionFeatures) -> list[tuple[QuestionKind, float]]:
    """The kinds with their points, the likeliest first."""
    counts = features.counts
    scored = []
    for kind in QuestionKind:
        points = sum(weight * min(int(counts[name]), most) for name, (weight, most) in _POINTS.get(kind, {}).items())
        scored.append((kind, round(_BIAS[kind] + points, 3)))
    return sorted(scored, key=lambda item: -item[1])


def _is_part(concept: Concept, others: Iterable[Concept]) -> bool:
    """Whether a longer name of the question has this one in it."""
    own = set(concept.normal.split())
    return any(len(other.normal) > len(concept.normal) and own < set(other.normal.split()) for other in others)


@dataclass(frozen=True)
class _CueTable:
    """Cues in the forms in which each is found fast: most are one word, and a question has few words."""

    words: frozenset[str]
    prefixes: frozenset[str]
    prefix_lengths: tuple[int, ...]
    phrases: tuple[tuple[str, re.Pattern[str]], ...]  # with the begin of the first word
    pieces: tuple[str, ...]  # of scripts without spaces, the longest first

    @classmethod
    def of(cls, cues: Iterable[str]) -> "_CueTable":
        """Also as people write them who leave the accents out."""
        plain = {cue for cue in cues if script_of(cue) not in _UNSPACED}
        forms = plain | {normalise(cue.replace("*", "§")).replace("§", "*") for cue in plain}
        single = {form for form in forms if re.fullmatch(r"\w+\*?", form)}
        prefixes = frozenset(form[:-1] for form in single if form.endswith("*"))
        return cls(
            words=frozenset(form for form in single if not form.endswith("*")),
            prefixes=prefixes,
            prefix_lengths=tuple(sorted({len(prefix) for prefix in prefixes})),
            phrases=tuple(
                (form.split()[0].rstrip("*"), re.compile(_expression(form), re.DOTALL))
                for form in sorted(forms - single)
                if form
            ),
            pieces=tuple(
                sorted({cue for cue in cues if script_of(cue) in _UNSPACED}, key=lambda cue: (-len(cue), cue))
            ),
        )

    def has(self, word: str) -> bool:
        return word in self.words or any(word[:length] in self.prefixes for length in self.prefix_lengths)

    def count(self, text: str) -> int:
        """How many of the words of `text` are cues, and how many phrases are in it."""
        found = sum(self.has(word) for word in _WORD.findall(text))
        found += sum(first in text and pattern.search(text) is not None for first, pattern in self.phrases)
        return found + sum(piece in text for piece in self.pieces)


def _is_aimless(plain: str) -> bool:
    """Whether a question speaks of texts and of nothing that would be in them."""
    if _count(SPECIFIC, LANGUAGES, plain):
        return False
    table = _table_of(MATERIAL, LANGUAGES)
    left = plain
    for piece in table.pieces:
        left = left.replace(piece, " ")
    others = [word for word in _WORD.findall(left) if not table.has(word)]
    return table.count(plain) > 0 and all(normalise(word) in STOP_WORDS or word in FUNCTION_WORDS for word in others)


def _count(cues: Cues, languages: Iterable[str], text: str) -> int:
    return _table_of(cues, languages).count(text)


def _table_of(cues: Cues, languages: Iterable[str]) -> _CueTable:
    return _table(tuple(dict.fromkeys(cue for language in languages for cue in cues[language])))


@cache
def _table(cues: tuple[str, ...]) -> _CueTable:
    return _CueTable.of(cues)


def _expression(cue: str) -> str:
    parts = [
        _GAP if word == ".." else re.escape(word.removesuffix("*")) + (r"\w*" if word.endswith("*") else "")
        for word in cue.split()
    ]
    joined = r"\s+".join(parts).replace(rf"\s+{_GAP}\s+", _GAP)
    before = "" if cue.startswith("'") else r"(?<!\w)"
    after = "" if cue.endswith("'") else r"(?!\w)"
    return f"{before}{joined}{after}"
