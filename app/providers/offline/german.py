"""Tells names from nouns in German, where both have capitals: a name is what is no German word."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import simplemma

from app.providers.offline.name_words import GERMAN_WORD_ENDS

_MIN_TAIL: Final = 5
_MIN_HEAD: Final = 3
_INITIAL_CHARS: Final = 2
_CACHED_WORDS: Final = 50_000


@lru_cache(maxsize=_CACHED_WORDS)
def is_german_word(word: str) -> bool:
    """Whether a capitalised word is in simplemma's German word list, is a compound that ends in such a word, or ends
    as only words do. The list also holds the best known names, which therefore count as words here.
    """
    if word.lower().endswith(GERMAN_WORD_ENDS) or simplemma.is_known(word, lang="de"):
        return True
    if "-" in word:
        return is_german_word(word.rsplit("-", 1)[1].capitalize() or "X")
    return any(
        simplemma.is_known(word[start:].capitalize(), lang="de")
        for start in range(_MIN_HEAD, len(word) - _MIN_TAIL + 1)
    )


def name_stretch(words: Sequence[str], given: Sequence[bool]) -> tuple[int, int]:
    """The part of a run of capitalised German words that is a name, as (start, end); empty where none is.

    It reaches from the first to the last word that is no German word; `given` marks words that are first names or
    places, which count as such, and a first name also takes the word behind it along, over an initial.
    """
    marks = [is_first or not is_german_word(word) for word, is_first in zip(words, given, strict=True)]
    for position, is_first in enumerate(given):
        following = position + 1
        while is_first and following < len(words):
            marks[following] = words[following][0].isupper()
            if len(words[following]) > _INITIAL_CHARS:
                break
            following += 1
    if not any(marks):
        return 0, 0
    return marks.index(True), len(marks) - marks[::-1].index(True)
