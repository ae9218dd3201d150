"""Tells names from nouns in German, where both have capitals: a name is what is no German word."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import simplemma

from app.providers.offline.name_words import GERMAN_WORD_ENDS, PERSON_TITLES
from app.text.concepts.words import is_identifier, normalise

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


@lru_cache(maxsize=_CACHED_WORDS)
def is_english_word(word: str) -> bool:
    return simplemma.is_known(word.lower(), lang="en")


def name_stretch(words: Sequence[str], given: Sequence[bool], places: Sequence[bool]) -> tuple[int, int]:
    """The part of a run of capitalised German words that is a name, as (start, end); empty where none is.

    It reaches from the first to the last word that is no German word, and on over English words beside them (Dolby
    Digital). A word marked in `given` is a first name and takes the word behind it along, over initials; the name starts
    with it, for what stands before it is what the person is or where from. `places` are never German words.
    """
    first_name = next((at for at, is_first in enumerate(given[:-1]) if is_first), None)
    if first_name is not None:
        return first_name, _behind_first_name(words, given, first_name)
    marks = [is_place or not is_german_word(word) for word, is_place in zip(words, places, strict=True)]
    if not any(marks):
        return 0, 0
    start, end = marks.index(True), len(marks) - marks[::-1].index(True)
    while start and not is_identifier(words[start]) and _may_lead(words[start - 1]):
        start -= 1
    while end < len(words) and is_english_word(words[end]):
        end += 1
    return start, end


def _may_lead(word: str) -> bool:
    return is_english_word(word) and normalise(word) not in PERSON_TITLES


def _behind_first_name(words: Sequence[str], given: Sequence[bool], first: int) -> int:
    """Where a name ends that begins with a first name: behind the one word after its first names, initials and
    particles, and behind further ones that are no German words.
    """
    end = first + 1
    while end < len(words):
        is_open = given[end - 1] or _is_small(words[end - 1])
        if not (is_open or given[end] or _is_small(words[end])) and is_german_word(words[end]):
            break
        end += 1
    return end


def _is_small(word: str) -> bool:
    return len(word) <= _INITIAL_CHARS or word[0].islower()
