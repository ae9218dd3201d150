"""The terms under which full text search (BM25) finds a text."""

import re
from collections.abc import Iterator

from app.text.concepts.caseless import cjk_words, stem, unspaced_words
from app.text.concepts.stems import without_ending
from app.text.concepts.stopwords import STOP_WORDS
from app.text.concepts.words import Script, Token, normalise, tokens

MAX_TERM_CHARS = 60
_INNER_MARKS = re.compile(r"[’'\-_./+#&]+")


def terms(text: str) -> list[str]:
    """The terms of ``text`` in order, repeated as often as they occur, function words left out.

    Words in normal form for scripts with spaces (some without their endings), compound tokens also by their parts; words and pairs of characters for
    Chinese and Japanese; words for Thai. Each is at most ``MAX_TERM_CHARS`` long.
    """
    found: list[str] = []
    for token in tokens(text):
        found.extend(without_ending(term)[:MAX_TERM_CHARS] for term in _terms(token) if term not in STOP_WORDS)
    return found


def _terms(token: Token) -> Iterator[str]:
    if token.script is Script.CJK:
        yield from _cjk_terms(token.text)
    elif token.script is Script.UNSPACED:
        yield from unspaced_words(token.text)
    elif token.script is Script.CASELESS:
        yield normalise(stem(token.text))
    else:
        normal = normalise(token.text)
        yield normal
        if not normal.isalnum():
            pieces = [piece for piece in _INNER_MARKS.split(normal) if piece]
            yield from (piece for piece in pieces if piece != normal)


def _cjk_terms(run: str) -> Iterator[str]:
    normal = normalise(run)
    if len(normal) == 1:
        yield normal
    pairs = {normal[start : start + 2] for start in range(len(normal) - 1)}
    for start in range(len(normal) - 1):
        yield normal[start : start + 2]
    yield from (word for word in cjk_words(normal) if len(word) > 1 and word not in pairs)
