"""Names in scripts with capitals, by runs of capitalised words and what else the text says about the same words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.providers.offline.gazetteer import place_names
from app.providers.offline.mentions import Mention
from app.providers.offline.name_words import (
    CALENDAR,
    COMMON_CAPITALS,
    DEMONYMS,
    GERMAN_WORD_ENDS,
    GIVEN_NAMES,
    HEAD_TYPES,
    PERSON_TITLES,
)
from app.text.concepts.names import MAX_NAME_TOKENS, is_identifier, name_runs
from app.text.concepts.stopwords import FUNCTION_WORDS
from app.text.concepts.words import Script, Token, normalise, tokens

_SPLITTING: Final = frozenset({"and", "und", "y", "e", "et", "for", "upon"})
_ROMAN: Final = re.compile("^[IVXLCM]+$")
_UNUSABLE_ALONE: Final = CALENDAR | DEMONYMS | COMMON_CAPITALS | FUNCTION_WORDS


@dataclass(frozen=True, slots=True)
class _Run:
    tokens: tuple[Token, ...]
    sentence: int
    text: str
    before: str  # normal form of the word before it, empty at the start of a sentence

    @property
    def normal(self) -> str:
        return normalise(self.text)


def cased_names(sentences: Sequence[str], language: str) -> Iterator[Mention]:
    """Names of the sentences, with repeats. A last name alone counts for the full name that the text also has."""
    lower = {
        token.text for sentence in sentences for token in tokens(sentence)
        if token.script is Script.CASED and token.text[0].islower()
    }  # fmt: skip
    runs = [run for index, sentence in enumerate(sentences) for run in _runs(sentence, index, lower)]
    places = place_names(language) | place_names("en")
    full_names = _full_names(runs)
    inside = {normalise(token.text) for run in runs if run.before for token in run.tokens}
    for run in runs:
        text = run.text
        if len(run.tokens) == 1:
            text = full_names.get(run.normal, text)
            if text == run.text and not _is_sure_single(run, language, places, inside, lower):
                continue
        yield Mention(text, _type_of(text, run, places), run.sentence, run.tokens[0].start)


def _runs(sentence: str, index: int, lower: set[str]) -> Iterator[_Run]:
    found = list(tokens(sentence))
    positions = {token.start: position for position, token in enumerate(found)}
    for run in name_runs(sentence, found):
        for piece in _pieces(run.tokens):
            piece = _trimmed(piece, positions, lower)
            if piece and len(piece) <= MAX_NAME_TOKENS:
                position = positions[piece[0].start]
                before = normalise(found[position - 1].text) if position else ""
                yield _Run(tuple(piece), index, _surface(sentence, piece), before)


def _pieces(run: Sequence[Token]) -> Iterator[list[Token]]:
    piece: list[Token] = []
    for token in run:
        if token.text in _SPLITTING:
            yield piece
            piece = []
        else:
            piece.append(token)
    yield piece


def _trimmed(piece: list[Token], positions: dict[int, int], lower: set[str]) -> list[Token]:
    """A piece without a first word that has its capital from the start of the sentence only, or loose connectors."""
    while piece and piece[-1].text.islower():
        piece = piece[:-1]
    while piece and (
        piece[0].text.islower()
        or normalise(piece[0].text) in FUNCTION_WORDS
        or (len(piece) > 1 and positions[piece[0].start] == 0 and piece[0].text.lower() in lower)
    ):
        piece = piece[1:]
    return piece


def _surface(sentence: str, piece: Sequence[Token]) -> str:
    text = sentence[piece[0].start : piece[-1].end]
    return text[:-2] if text.endswith(("'s", "’s")) else text


def _full_names(runs: Sequence[_Run]) -> dict[str, str]:
    """Last names that belong to exactly one longer name of the text, and that name."""
    owners: dict[str, set[str]] = {}
    texts: dict[str, str] = {}
    for run in runs:
        last = normalise(run.tokens[-1].text)
        if len(run.tokens) > 1 and last not in HEAD_TYPES and last not in _UNUSABLE_ALONE:
            owners.setdefault(last, set()).add(run.normal)
            texts.setdefault(run.normal, run.text)
    return {last: texts[next(iter(names))] for last, names in owners.items() if len(names) == 1}


def _is_sure_single(run: _Run, language: str, places: dict[str, str], inside: set[str], lower: set[str]) -> bool:
    text, normal = run.text, run.normal
    if normal in places:
        return True
    if normal in _UNUSABLE_ALONE or _ROMAN.match(text) or len(text) < 3 or text.lower() in lower:
        return len(text) == 2 and text.isupper() and text.isalpha() and not _ROMAN.match(text)
    if is_identifier(text):
        return text[0].isalpha() and any(char.isupper() for char in text)
    if language == "de":
        return _is_german_name(run)
    return bool(run.before) or normal in inside


def _is_german_name(run: _Run) -> bool:
    return run.before in PERSON_TITLES and not run.normal.endswith(GERMAN_WORD_ENDS)


def _type_of(text: str, run: _Run, places: dict[str, str]) -> str:
    normal = normalise(text)
    words = normal.split()
    if normal in places:
        return "location"
    for word in (words[-1], words[0]):
        if word in HEAD_TYPES:
            return HEAD_TYPES[word]
    if words[0] in PERSON_TITLES or words[0] in GIVEN_NAMES or run.before in PERSON_TITLES:
        return "person"
    return "concept"
