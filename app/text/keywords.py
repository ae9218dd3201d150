"""The built-in keyword extractor: what a question is about, without a model call.

High-level keywords are themes (plain words and phrases), low-level ones are names, identifiers and numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import rjieba

from app.text.concepts.caseless import cjk_words, is_hiragana, is_katakana
from app.text.concepts.extraction import Concept, ConceptKind, extract_concepts
from app.text.concepts.stopwords import BY_LANGUAGE, STOP_WORDS
from app.text.concepts.words import Script, Token, normalise, tokens
from app.text.languages import detect_language

MAX_HIGH: Final = 8
MAX_LOW: Final = 12
_MAX_WHOLE_QUERY_CHARS: Final = 200
_MAX_QUERY_CHARS: Final = 20_000
_MAX_PHRASE_WORDS: Final = 4
_MIN_WORD_CHARS: Final = 3
_CJK_NAME_TAGS: Final = frozenset(
    {"nr", "nrt", "nrfg", "ns", "nt", "nz"}
)  # jieba: person, place, organisation, other name


@dataclass(frozen=True, slots=True)
class Keywords:
    high: tuple[str, ...]
    low: tuple[str, ...]


def extract_keywords(query: str) -> Keywords:
    """The keywords of `query`, at most 8 high-level and 12 low-level ones, in order of appearance.

    For a query that is not blank neither list is empty: where there is no name the themes serve for both, and where
    there is nothing but function words or signs, the query itself does.
    """
    whole = " ".join(query.split())[:_MAX_WHOLE_QUERY_CHARS]
    if not whole:
        return Keywords((), ())
    query = query[:_MAX_QUERY_CHARS]
    concepts = [concept for concept in extract_concepts([query]) if concept.kind <= ConceptKind.NUMBER]
    low = [concept.surface for concept in concepts if not _is_part(concept, concepts)]
    high: list[str] = []
    for token_run in _theme_runs(query, {part for concept in concepts for part in concept.normal.split()}):
        if token_run[0].script is Script.CJK:
            _add_cjk(token_run[0].text, high, low)
        else:
            high.append(query[token_run[0].start : token_run[-1].end])
    return Keywords(
        tuple(_unique(high or low or [whole])[:MAX_HIGH]),
        tuple(_unique(low or high or [whole])[:MAX_LOW]),
    )


def _is_part(concept: Concept, names: list[Concept]) -> bool:
    """Whether a longer name of the query says the same: `University of Paris` makes `University` superfluous."""
    own = set(concept.normal.split())
    return any(len(other.normal) > len(concept.normal) and own <= set(other.normal.split()) for other in names)


def _theme_runs(query: str, named: set[str]) -> Iterator[list[Token]]:
    """Runs of neighbouring content words outside the names, at most four long; one token each for scripts without spaces."""
    stop_words = STOP_WORDS | BY_LANGUAGE.get(detect_language(query), frozenset())
    run: list[Token] = []
    for token in tokens(query):
        is_joined = bool(run) and len(run) < _MAX_PHRASE_WORDS and query[run[-1].end : token.start].isspace()
        normal = normalise(token.text)
        is_spaced = token.script in (Script.CASED, Script.CASELESS)
        is_theme = (
            len(normal) >= _MIN_WORD_CHARS
            and not normal.isdecimal()
            and normal not in stop_words
            and normal not in named
        )
        if run and not (is_joined and is_theme and is_spaced):
            yield run
            run = []
        if not is_spaced:
            yield [token]
        elif is_theme:
            run.append(token)
    if run:
        yield run


def _add_cjk(text: str, high: list[str], low: list[str]) -> None:
    for word in cjk_words(text):
        if len(word) > 1 and not is_hiragana(word) and normalise(word) not in STOP_WORDS:
            is_name = is_katakana(word) or rjieba.tag(word)[0][1] in _CJK_NAME_TAGS
            (low if is_name else high).append(word)


def _unique(values: list[str]) -> list[str]:
    return list({normalise(value): value for value in reversed(values)}.values())[::-1]
