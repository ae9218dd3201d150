"""Runs of capitalised words in scripts that have capitals: the names of a sentence."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.text.concepts.stopwords import FUNCTION_WORDS, STOP_WORDS
from app.text.concepts.words import Token

MAX_NAME_TOKENS = 7
# fmt: off
CONNECTORS = frozenset({
    "of", "the", "de", "da", "di", "du", "del", "van", "von", "der", "la", "le", "el", "al", "bin", "ibn", "and", "&", "for",
    "und", "y", "e", "et", "upon", "де", "ди", "дю", "дер", "ван", "фон", "ла", "ле", "эль", "аль", "ибн", "бин",
})
# fmt: on
_MAX_CONNECTORS_IN_ROW = 2
_ROMANCE_ARTICLES = frozenset(
    {"el", "la", "las", "le", "les", "lo", "los", "il", "da", "do", "des", "du", "de", "del", "di"}
)
_ROMANCE_WORDS = frozenset(
    {"de", "la", "que", "en", "el", "los", "les", "des", "est", "et", "una", "une", "di", "che", "em", "os", "e"}
)
_MIN_ROMANCE_WORDS = 2
_INITIAL_CHARS = 2


class NameRun(NamedTuple):
    """Consecutive tokens that form one name: the whole run first, then its parts between connectors."""

    tokens: Sequence[Token]
    starts_sentence: bool


def name_runs(sentence: str, found: Sequence[Token]) -> Iterator[NameRun]:
    """The maximal runs of capitalised tokens of ``sentence``, leading function words dropped.

    ``found`` are the tokens of the sentence in order. Tokens of a run are joined by white space, `` & ``, or ``. `` after
    an initial; connectors such as ``of`` or ``von`` may stand inside.
    """
    end = 0
    for position in [position for position, token in enumerate(found) if token[0].is_capitalised]:
        if position < end:
            continue
        end = _run_end(sentence, found, position)
        start = position
        droppable = STOP_WORDS if position else FUNCTION_WORDS
        while start < end and _is_dropped(found, start, end, droppable):
            start += 1
        while start < end and found[start][0].text in CONNECTORS:
            start += 1
        if start < end:
            yield NameRun(found[start:end], starts_sentence=start == 0)


def _run_end(sentence: str, found: Sequence[Token], start: int) -> int:
    end = start + 1
    position = end
    connectors = 0
    while position < len(found):
        lexeme = found[position][0]
        is_capitalised = lexeme.is_capitalised
        if not is_capitalised and (connectors == _MAX_CONNECTORS_IN_ROW or lexeme.text not in CONNECTORS):
            break
        if not _joins(sentence, found[position - 1], found[position]):
            break
        position += 1
        if is_capitalised:
            end, connectors = position, 0
        else:
            connectors += 1
    return end


def _joins(sentence: str, left: Token, right: Token) -> bool:
    text = left[0].text
    if text.endswith(("'s", "’s")):
        return False
    gap = sentence[left[2] : right[1]]
    if gap == " " or gap.strip() == "&":
        return True
    if gap == ". ":
        return len(text) <= _INITIAL_CHARS and text[0].isupper()
    return gap.isspace() and "\n" not in gap


def _is_dropped(sentence: Sequence[Token], start: int, end: int, droppable: frozenset[str]) -> bool:
    """Whether the first word of a run is a function word with a capital from its place, and no part of the name."""
    lexeme = sentence[start][0]
    if lexeme.normal not in droppable or _is_acronym(lexeme.text):
        return False
    if end - start > 1 and lexeme.normal in _ROMANCE_ARTICLES:
        # Los Angeles and La Paz keep theirs, unless the whole sentence is in such a language.
        return sum(token[0].text in _ROMANCE_WORDS for token in sentence) >= _MIN_ROMANCE_WORDS
    return True


def _is_acronym(text: str) -> bool:
    return len(text) > 1 and text.isupper()


def parts(run: Sequence[Token]) -> list[tuple[Token, ...]]:
    """The stretches of a run between its connectors; just one when it has none."""
    found: list[list[Token]] = [[]]
    for token in run:
        if token[0].text in CONNECTORS:
            found.append([])
        else:
            found[-1].append(token)
    return [tuple(part) for part in found if part]
