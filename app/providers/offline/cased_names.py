"""Names in scripts with capitals, by runs of capitalised words and what else the text says about the same words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.providers.offline.gazetteer import place_names
from app.providers.offline.german import is_german_word, name_stretch
from app.providers.offline.mentions import Mention
from app.providers.offline.name_runs import Candidate, candidates
from app.providers.offline.name_words import (
    CALENDAR,
    COMMON_CAPITALS,
    DEMONYMS,
    GIVEN_NAMES,
    HEAD_TYPES,
    OFFICIAL_HEADS,
    PERSON_TITLES,
    ROLE_ENDS,
    SENTENCE_STARTERS,
)
from app.providers.offline.russian import (
    is_russian_adjective,
    is_russian_first_name,
    is_russian_institution,
    is_russian_title,
    nominative_place,
)
from app.text.concepts.stopwords import FUNCTION_WORDS
from app.text.concepts.words import Script, is_identifier, normalise, tokens

_ROMAN: Final = re.compile("^[IVXLCM]+$")
_ACRONYM: Final = re.compile(r"^[A-ZА-Я][A-ZА-Я0-9]*(?:[&/.][A-Z]+)*$")
_UNUSABLE_ALONE: Final = CALENDAR | DEMONYMS | COMMON_CAPITALS | FUNCTION_WORDS | HEAD_TYPES.keys()
_MIN_SINGLE_CHARS: Final = 3
_MIN_ROLE_NAME_TOKENS: Final = 3
_MIN_NAME_BEHIND_TITLE: Final = 2
_MAX_UNIT_CHARS: Final = 3  # kWh
_PLURAL_ACRONYM: Final = re.compile("^[A-Z]{2,}s$")


@dataclass(frozen=True)
class _Text:
    """What the whole text says about its words."""

    language: str
    places: dict[str, str]
    lower: frozenset[str]  # words that also occur without a capital
    inside: frozenset[str]  # words with a capital that does not come from the start of a sentence
    full_names: dict[str, str]  # last names that belong to exactly one longer name of the text, and that name


def cased_names(sentences: Sequence[str], language: str) -> Iterator[Mention]:
    """Names of the sentences, with repeats. A last name alone counts for the full name that the text also has."""
    places = place_names(language) | place_names("en")
    lower = frozenset(
        token.text
        for sentence in sentences
        for token in tokens(sentence)
        if token.script is Script.CASED and token.text[0].islower()
    )
    found = [
        narrowed
        for index, sentence in enumerate(sentences)
        for candidate in candidates(sentence, index, language)
        if (narrowed := _narrowed(candidate, language, places, lower)) is not None
    ]
    inside = frozenset(normalise(token.text) for candidate in found if candidate.before for token in candidate.tokens)
    text = _Text(language, places, lower, inside, _full_names(found))
    for candidate in found:
        if len(candidate.tokens) > 1:
            yield _mention(candidate, candidate.text, text)
        elif candidate.normal in text.full_names:
            yield _mention(candidate, text.full_names[candidate.normal], text)
        elif language == "ru" and (place := nominative_place(candidate.normal)):
            yield Mention(place, "location", candidate.sentence, candidate.tokens[0].start)
        elif _is_sure_single(candidate, text):
            yield _mention(candidate, candidate.text, text)


def _narrowed(candidate: Candidate, language: str, places: dict[str, str], lower: frozenset[str]) -> Candidate | None:
    """A candidate of several words without those that do not belong to the name; None if nothing is left."""
    if candidate.normal in places or len(candidate.tokens) == 1:
        return candidate
    if language == "de" and candidate.tokens[1].text not in ("of", "the"):
        return _german_part(candidate, places)
    words = [normalise(word) for word in candidate.words]
    if all(word in _UNUSABLE_ALONE for word in words) and not HEAD_TYPES.keys() & set(words):
        return None
    if language == "ru" and all(map(is_russian_adjective, words)):
        return None
    behind_title = _behind_title(words)
    # America Larry Ellison: what the person is, or where from, stands before the first name.
    first = next((at for at in range(behind_title, len(words) - 1) if _is_first_name(words[at])), behind_title)
    if first and len(words) - first >= _MIN_NAME_BEHIND_TITLE and words[-1] not in HEAD_TYPES:
        candidate = candidate.part(first, len(words))
    elif not candidate.before:
        is_role = len(words) >= _MIN_ROLE_NAME_TOKENS and words[0].endswith(ROLE_ENDS)
        is_given = _is_first_name(words[0]) or _is_title(words[0])
        is_generic = words[0] in SENTENCE_STARTERS or (
            language == "ru" and is_russian_institution(words[0]) and words[1].isascii()
        )
        if candidate.words[0].lower() in lower or is_generic or (is_role and not is_given):
            return candidate.part(1, len(words))
    return candidate


def _behind_title(words: Sequence[str]) -> int:
    """Where the name behind the last title begins; 0 without one. The General Conference is no general."""
    kinds = HEAD_TYPES.keys() | OFFICIAL_HEADS
    return max(
        (at + 1 for at, word in enumerate(words[:-1]) if _is_title(word) and words[at + 1] not in kinds), default=0
    )


def _german_part(candidate: Candidate, places: dict[str, str]) -> Candidate | None:
    words = candidate.words
    given = [normalise(word) in GIVEN_NAMES for word in words]
    start, end = name_stretch(words, given, [normalise(word) in places for word in words])
    return candidate.part(start, end) if end else None


def _full_names(found: Sequence[Candidate]) -> dict[str, str]:
    owners: dict[str, dict[str, str]] = {}
    for candidate in found:
        last = normalise(candidate.words[-1])
        if len(candidate.tokens) > 1 and last not in _UNUSABLE_ALONE:
            owners.setdefault(last, {}).setdefault(candidate.normal, candidate.text)
    return {last: next(iter(names.values())) for last, names in owners.items() if len(names) == 1}


def _is_sure_single(candidate: Candidate, text: _Text) -> bool:
    word, normal = candidate.text, candidate.normal
    if normal in text.places:
        return True
    if (
        normal in _UNUSABLE_ALONE
        or _is_title(normal)
        or _ROMAN.match(word)
        or candidate.is_beside_number
        or candidate.is_after_possessive
    ):
        return False
    if _ACRONYM.match(word):
        return len(word) > 1
    if text.language == "de":
        return _is_german_name(candidate)
    if text.language == "ru" and (is_russian_adjective(normal) or is_russian_institution(normal)):
        return False
    if len(word) < _MIN_SINGLE_CHARS or word.lower() in text.lower:
        return False
    if is_identifier(word):
        is_unit = word[0].islower() and len(word) <= _MAX_UNIT_CHARS
        return word[0].isalpha() and any(char.isupper() for char in word) and "." not in word and not is_unit
    return bool(candidate.before) or normal in text.inside


def _is_german_name(candidate: Candidate) -> bool:
    word = candidate.text
    is_word = is_german_word(word)
    return word[0].isupper() and "." not in word and (not is_word or _is_title(candidate.before))


def _mention(candidate: Candidate, name: str, text: _Text) -> Mention:
    if _PLURAL_ACRONYM.match(name):
        name = name[:-1]
    return Mention(name, _type_of(name, candidate.before, text.places), candidate.sentence, candidate.tokens[0].start)


def _type_of(name: str, before: str, places: dict[str, str]) -> str:
    normal = normalise(name)
    words = normal.split()
    if normal in places:
        return "location"
    for word in (words[-1], words[0]):
        if word in HEAD_TYPES:
            return HEAD_TYPES[word]
    is_person = _is_title(words[0]) or _is_title(before) or _is_first_name(words[0])
    return "person" if is_person else "concept"


def _is_title(normal: str) -> bool:
    return normal in PERSON_TITLES or is_russian_title(normal)


def _is_first_name(normal: str) -> bool:
    return normal in GIVEN_NAMES or is_russian_first_name(normal)
