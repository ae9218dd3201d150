"""Runs of capitalised words in scripts that have capitals: the names of a sentence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.text.concepts.stopwords import FUNCTION_WORDS, STOP_WORDS
from app.text.concepts.words import Script, Token, normalise

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
_IDENTIFIER_CHARS = frozenset("_+#")


@dataclass(frozen=True, slots=True)
class NameRun:
    """Consecutive tokens that form one name: the whole run first, then its parts between connectors."""

    tokens: tuple[Token, ...]
    starts_sentence: bool


def is_capitalised(token: Token) -> bool:
    """Whether a token of a cased script is written as a name: a capital first, or anywhere inside (``iPhone``)."""
    return token.script is Script.CASED and (token.text[0].isupper() or is_identifier(token.text))


@lru_cache(maxsize=65_536)
def is_identifier(text: str) -> bool:
    """Whether a token cannot be a plain word: letters with digits, a capital inside, or characters of program names."""
    if text.isalpha() and text[1:].islower():
        return False  # nearly every word, told apart fast
    if not any(char.isalpha() for char in text):
        return False
    has_inner_capital = any(char.isupper() and text[index] not in "-'’" for index, char in enumerate(text[1:]))
    return has_inner_capital or any(char.isdecimal() or char in _IDENTIFIER_CHARS for char in text)


def name_runs(sentence: str, found: Sequence[Token]) -> Iterator[NameRun]:
    """The maximal runs of capitalised tokens of ``sentence``, leading function words dropped.

    ``found`` are the tokens of the sentence in order. Tokens of a run are joined by white space, `` & ``, or ``. `` after
    an initial; connectors such as ``of`` or ``von`` may stand inside.
    """
    position = 0
    while position < len(found):
        if not is_capitalised(found[position]):
            position += 1
            continue
        end = _run_end(sentence, found, position)
        run = list(found[position:end])
        starts_sentence = position == 0
        droppable = FUNCTION_WORDS if starts_sentence else STOP_WORDS
        while run and _is_dropped(run, droppable, found):
            run.pop(0)
            starts_sentence = False
        if run:
            yield from _without_loose_connectors(run, starts_sentence)
        position = end


def _without_loose_connectors(run: list[Token], starts_sentence: bool) -> Iterator[NameRun]:
    while run and run[0].text in CONNECTORS:
        run = run[1:]
    if run:
        yield NameRun(tuple(run), starts_sentence)


def _run_end(sentence: str, found: Sequence[Token], start: int) -> int:
    end = start + 1
    position = end
    connectors = 0
    while position < len(found) and _joins(sentence, found[position - 1], found[position]):
        token = found[position]
        position += 1
        if is_capitalised(token):
            end, connectors = position, 0
        elif token.text in CONNECTORS and connectors < _MAX_CONNECTORS_IN_ROW:
            connectors += 1
        else:
            break
    return end


def _joins(sentence: str, left: Token, right: Token) -> bool:
    gap = sentence[left.end : right.start]
    if left.text.endswith(("'s", "’s")):
        return False
    if gap == " " or gap.strip() == "&":
        return True
    if gap == ". ":
        return len(left.text) <= _INITIAL_CHARS and left.text[0].isupper()
    return gap.isspace() and "\n" not in gap


def _is_dropped(run: Sequence[Token], droppable: frozenset[str], sentence: Sequence[Token]) -> bool:
    """Whether the first word of a run is a function word with a capital from its place, and no part of the name."""
    word = normalise(run[0].text)
    if word not in droppable or _is_acronym(run[0].text):
        return False
    if len(run) > 1 and word in _ROMANCE_ARTICLES:
        # Los Angeles and La Paz keep theirs, unless the whole sentence is in such a language.
        return sum(token.text in _ROMANCE_WORDS for token in sentence) >= _MIN_ROMANCE_WORDS
    return True


def _is_acronym(text: str) -> bool:
    return len(text) > 1 and text.isupper()


def parts(run: Sequence[Token]) -> list[tuple[Token, ...]]:
    """The stretches of a run between its connectors; just one when it has none."""
    found: list[list[Token]] = [[]]
    for token in run:
        if token.text in CONNECTORS:
            found.append([])
        else:
            found[-1].append(token)
    return [tuple(part) for part in found if part]
