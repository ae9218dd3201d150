"""Candidates for names in a sentence of a cased script: runs of capitalised words, cut where they hardly are one name."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from app.providers.offline.name_words import OFFICIAL_HEADS
from app.text.concepts.names import MAX_NAME_TOKENS, name_runs
from app.text.concepts.stopwords import FUNCTION_WORDS
from app.text.concepts.words import Token, lexeme, normalise, tokens

_SPLITTING: Final = frozenset({"and", "und", "y", "e", "et", "for", "upon"})
_EXTENDING: Final = frozenset({"and", "for", "on", "of", "the"})
# In German these join nouns to phrases far more often than words to a name.
_GERMAN_SPLITTING: Final = _SPLITTING | {"der", "von", "den"}
_FULL_STOPS: Final = ".!?"
_OPENING_MARKS: Final = "\"'“„«»‘:"
_MAX_EXTENDED_TOKENS: Final = 9
_MIN_ADJECTIVE_CHARS: Final = 4
_ABBREVIATION: Final = re.compile(r"^(?:[A-Z]\.)+[A-Z]$")


@dataclass(frozen=True)
class Candidate:
    """A run of tokens that may be a name, and where it stands."""

    sentence: int
    source: str  # the sentence
    tokens: tuple[Token, ...]
    before: str  # normal form of the word before it; empty where the run opens a sentence or a quotation
    is_beside_number: bool
    is_after_possessive: bool

    @cached_property
    def text(self) -> str:
        start, end = self.tokens[0].start, self.tokens[-1].end
        if _ABBREVIATION.match(self.tokens[-1].text) and self.source[end : end + 1] == ".":
            end += 1
        text = self.source[start:end]
        return text[:-2] if text.endswith(("'s", "’s")) else text

    @cached_property
    def normal(self) -> str:
        return normalise(self.text)

    @property
    def words(self) -> list[str]:
        """The words as written, a possessive ending left out."""
        return [token.text.removesuffix("'s").removesuffix("’s") for token in self.tokens]

    def part(self, start: int, end: int) -> "Candidate":
        """The candidate of some of its tokens, connectors at both ends left out."""
        while start < end - 1 and self.tokens[start].text.islower():
            start += 1
        while start < end - 1 and self.tokens[end - 1].text.islower():
            end -= 1
        before = normalise(self.tokens[start - 1].text) if start else self.before
        return Candidate(
            self.sentence, self.source, self.tokens[start:end], before,
            self.is_beside_number, self.is_after_possessive and not start,
        )  # fmt: skip


def candidates(sentence: str, index: int, language: str) -> Iterator[Candidate]:
    """The candidates of a sentence in order."""
    found = [part for token in tokens(sentence) for part in _split_at_slash(token)]
    positions = {token.start: position for position, token in enumerate(found)}
    splitting = _GERMAN_SPLITTING if language == "de" else _SPLITTING
    past = -1
    for run in name_runs(sentence, found):
        for piece in _pieces(run.tokens, splitting):
            piece = _trimmed(piece)
            if not piece or piece[0].start < past:
                continue
            piece = _extended(piece, found, positions, sentence)
            past = piece[-1].end
            limit = MAX_NAME_TOKENS if len(piece) <= MAX_NAME_TOKENS else _MAX_EXTENDED_TOKENS
            if len(piece) <= limit:
                yield _candidate(sentence, index, piece, found, positions)


def _split_at_slash(token: Token) -> Iterator[Token]:
    """`Pertwee/Tom` are two words, `AC/DC` is one name."""
    if "/" not in token.text or token.text.isupper():
        yield token
        return
    start = token.start
    for part in token.text.split("/"):
        yield Token(lexeme(part), start, start + len(part))
        start += len(part) + 1


def _pieces(run: Sequence[Token], splitting: frozenset[str]) -> Iterator[list[Token]]:
    piece: list[Token] = []
    for token in run:
        if token.text in splitting:
            yield piece
            piece = []
        else:
            piece.append(token)
    yield piece


def _trimmed(piece: list[Token]) -> list[Token]:
    while piece and piece[-1].text.islower():
        piece = piece[:-1]
    while piece and (piece[0].text.islower() or _is_loose(piece)):
        piece = piece[1:]
    return piece


def _is_loose(piece: Sequence[Token]) -> bool:
    """Whether the first word is none of the name: a function word alone, or an adjective such as `French-speaking`."""
    word = piece[0].text
    if len(piece) == 1 and not word.isupper() and normalise(word) in FUNCTION_WORDS:
        return True
    ending = word.rsplit("-", 1)[1] if "-" in word else ""
    is_adjective = ending.isascii() or word[0].isascii()
    return len(ending) >= _MIN_ADJECTIVE_CHARS and ending.islower() and is_adjective


def _extended(piece: list[Token], found: Sequence[Token], positions: dict[int, int], sentence: str) -> list[Token]:
    """An official name goes on behind connectors that would end any other."""
    if not {normalise(token.text) for token in piece} & OFFICIAL_HEADS:
        return piece
    end = stop = positions[piece[-1].start] + 1
    while stop < len(found) and sentence[found[stop - 1].end : found[stop].start] == " ":
        if found[stop].text[0].isupper():
            end = stop + 1
        elif found[stop].text not in _EXTENDING:
            break
        stop += 1
    return list(found[positions[piece[0].start] : end])


def _candidate(
    sentence: str, index: int, piece: Sequence[Token], found: Sequence[Token], positions: dict[int, int]
) -> Candidate:
    first, last = positions[piece[0].start], positions[piece[-1].start]
    mark = sentence[: piece[0].start].rstrip()[-1:]
    # A full stop behind an abbreviation in lower case (in 1040 гг. Существует) hides the start of a sentence.
    opens = first == 0 or mark in _OPENING_MARKS or (mark in _FULL_STOPS and found[first - 1].text.islower())
    beside = [found[position].text for position in (first - 1, last + 1) if 0 <= position < len(found)]
    return Candidate(
        index,
        sentence,
        tuple(piece),
        "" if opens else normalise(found[first - 1].text),
        any(word[0].isdecimal() for word in beside),
        first > 0 and found[first - 1].text.endswith(("'s", "’s")),
    )
