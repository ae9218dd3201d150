"""The terms under which full text search (BM25) finds a text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from app.text.concepts.caseless import cjk_words, segments, stem
from app.text.concepts.stems import without_ending
from app.text.concepts.stopwords import STOP_WORDS
from app.text.concepts.words import Lexeme, Script, Token, normalise, tokens

MAX_TERM_CHARS = 60
_INNER_MARKS = re.compile(r"[’'\-_./+#&]+")


def terms(text: str) -> list[str]:
    """The terms of ``text`` in order, repeated as often as they occur, function words left out.

    Words in normal form for scripts with spaces (some without their endings), compound tokens also by their parts; words and pairs of characters for
    Chinese and Japanese; words for Thai. Each is at most ``MAX_TERM_CHARS`` long.
    """
    return terms_of(tokens(text))


def terms_of(found: Iterable[Token]) -> list[str]:
    """As `terms`, for a text whose tokens are known."""
    return list(chain.from_iterable([token[0].terms or _terms_of(token[0]) for token in found]))


def _terms_of(lexeme: Lexeme) -> Sequence[str]:
    if lexeme.terms is None:
        lexeme.terms = tuple([_term(term) for term in _candidates(lexeme) if term not in STOP_WORDS])
    return lexeme.terms


def _candidates(lexeme: Lexeme) -> Iterable[str]:
    if lexeme.script is Script.CJK:
        return _cjk_terms(lexeme)
    if lexeme.script is Script.UNSPACED:
        return segments(lexeme)
    if lexeme.script is Script.CASELESS:
        return [normalise(stem(lexeme.text))]
    normal = lexeme.normal
    if normal.isalnum():
        return [normal]
    return [normal, *(piece for piece in _INNER_MARKS.split(normal) if piece and piece != normal)]


def _term(word: str) -> str:
    return without_ending(word)[:MAX_TERM_CHARS]


def _cjk_terms(run: Lexeme) -> Iterator[str]:
    normal = run.normal
    if len(normal) == 1:
        yield normal
    pairs = [normal[start : start + 2] for start in range(len(normal) - 1)]
    yield from pairs
    known = set(pairs)
    words = segments(run) if normal == run.text else cjk_words(normal)
    yield from (word for word in words if len(word) > 1 and word not in known)
