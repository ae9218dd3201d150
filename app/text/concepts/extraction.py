"""What a text is about, as concepts: names, identifiers, numbers and words, with a key that needs no dictionary table.

Stateless and deterministic: the same text gives the same keys in every process, with no corpus statistics.
How many concepts of a passage are kept is decided by the lazy index.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b

from app.text.concepts.caseless import caseless_words
from app.text.concepts.names import MAX_NAME_TOKENS, NameRun, is_identifier, name_runs, parts
from app.text.concepts.stopwords import FUNCTION_WORDS, STOP_WORDS
from app.text.concepts.words import Script, Token, normalise, tokens

MIN_WORD_CHARS = 4
MIN_NUMBER_DIGITS = 3
MAX_CONCEPT_CHARS = 200
_MAX_PHRASE_TOKENS = 4
_PARENTHESISED = re.compile(r"\s*[(（\[][^()（）\[\]]*[)）\]]")


class ConceptKind(IntEnum):
    """Strongest first: a concept found as several kinds keeps the smallest."""

    NAME = 0  # capitalised run, or an identifier
    NUMBER = 1  # at least three digits
    WORD = 2  # lower-case word, or a word of a script without capitals
    PHRASE = 3  # consecutive words of a query; never stored


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept of a text."""

    key: int  # signed 64 bits
    normal: str
    surface: str  # as first written
    kind: ConceptKind
    sentences: tuple[int, ...]  # indexes of the sentences that hold it, ascending; empty if only the title does
    tf: int  # occurrences in the sentences
    in_title: bool
    is_title: bool  # the whole title is this concept
    is_caseless: bool  # from a script without capitals, where names cannot be told from words


@dataclass(slots=True)
class _Draft:
    surface: str
    kind: ConceptKind
    is_caseless: bool
    sentences: dict[int, None] = field(default_factory=dict)
    tf: int = 0
    in_title: bool = False
    is_title: bool = False


@lru_cache(maxsize=131_072)
def concept_key(normal: str) -> int:
    """The signed 64-bit BLAKE2b key of a normal form (RFC 7693), as it fits a Postgres ``bigint``."""
    return int.from_bytes(blake2b(normal.encode(), digest_size=8).digest(), "big", signed=True)


def title_text(title: str) -> str:
    """A title without its parenthesised parts: ``Mercury (planet)`` is about ``Mercury``."""
    return _PARENTHESISED.sub("", title).strip()


def extract_concepts(sentences: Sequence[str], title: str = "") -> list[Concept]:
    """The concepts of a text in order of first appearance, those of the title first."""
    drafts: dict[str, _Draft] = {}
    name = title_text(title)
    for form in _title_forms(name):
        drafts[normalise(form)[:MAX_CONCEPT_CHARS]] = _Draft(
            form, ConceptKind.NAME, is_caseless=False, in_title=True, is_title=True
        )
    if drafts:
        for surface, kind, caseless in _mentions(name):
            _note(drafts, surface, kind, caseless).in_title = True
    for index, sentence in enumerate(sentences):
        for surface, kind, caseless in _mentions(sentence):
            draft = _note(drafts, surface, kind, caseless)
            draft.sentences[index] = None
            draft.tf += 1
    return [
        Concept(
            concept_key(normal), normal, draft.surface, draft.kind, tuple(draft.sentences), draft.tf,
            draft.in_title, draft.is_title, draft.is_caseless,
        )
        for normal, draft in drafts.items()
    ]  # fmt: skip


def query_concepts(query: str) -> list[Concept]:
    """The concepts of a question, and beside them its phrases of two to four consecutive words.

    People write names in lower case when they search, so a phrase is looked up under the key that a name would have.
    """
    concepts = extract_concepts([query])
    known = {concept.normal for concept in concepts}
    for surface in _phrases(query):
        normal = normalise(surface)
        if normal not in known:
            known.add(normal)
            concepts.append(
                Concept(concept_key(normal), normal, surface, ConceptKind.PHRASE, (0,), 1, False, False, False)
            )
    return concepts


def _title_forms(name: str) -> Iterator[str]:
    """A title as it stands, and without its article, for texts speak of ``The Silver Tide`` as ``Silver Tide`` too."""
    if normalise(name):
        yield name
    first = next(tokens(name), None)
    if first is not None and first.start == 0 and normalise(first.text) in FUNCTION_WORDS:
        rest = name[first.end :].strip()
        if rest and any(char.isalnum() for char in rest):
            yield rest


def _note(drafts: dict[str, _Draft], surface: str, kind: ConceptKind, is_caseless: bool) -> _Draft:
    normal = normalise(surface)[:MAX_CONCEPT_CHARS]
    draft = drafts.get(normal)
    if draft is None:
        draft = drafts[normal] = _Draft(surface, kind, is_caseless)
    elif kind < draft.kind:
        draft.kind = kind
    return draft


def _mentions(sentence: str) -> Iterator[tuple[str, ConceptKind, bool]]:
    """Every mention in a sentence as (surface, kind, from a script without capitals)."""
    found = list(tokens(sentence))
    in_names: set[int] = set()
    for run in name_runs(sentence, found):
        for surface in _names(sentence, run):
            yield surface, ConceptKind.NAME, False
            in_names.update(token.start for token in run.tokens)
    for token in found:
        if token.script is not Script.CASED:
            for word in caseless_words(token):
                yield word, ConceptKind.WORD, True
        elif token.start not in in_names and (kind := _plain_kind(token.text)) is not None:
            yield token.text, kind, False


def _names(sentence: str, run: NameRun) -> Iterator[str]:
    """The whole run and its parts; nothing for a single plain word that only stands at the start of a sentence."""
    if len(run.tokens) == 1 and run.starts_sentence and not is_identifier(run.tokens[0].text):
        return
    pieces = parts(run.tokens)
    if len(run.tokens) <= MAX_NAME_TOKENS:
        yield _surface(sentence, run.tokens)
    if len(pieces) > 1 or len(run.tokens) > MAX_NAME_TOKENS:
        for piece in pieces:
            is_name = len(piece) > 1 or len(piece[0].text) > 1
            if len(piece) <= MAX_NAME_TOKENS and is_name and normalise(piece[0].text) not in STOP_WORDS:
                yield _surface(sentence, piece)


def _surface(sentence: str, run: Sequence[Token]) -> str:
    text = sentence[run[0].start : run[-1].end]
    return text[:-2] if text.endswith(("'s", "’s")) else text


@lru_cache(maxsize=65_536)
def _plain_kind(text: str) -> ConceptKind | None:
    """What a cased token outside any name is: an identifier, a number or a word; None where it is not worth keeping."""
    if is_identifier(text):
        return ConceptKind.NAME
    if not any(char.isalpha() for char in text):
        is_number = sum(char.isdecimal() for char in text) >= MIN_NUMBER_DIGITS
        return ConceptKind.NUMBER if is_number else None
    return ConceptKind.WORD if len(text) >= MIN_WORD_CHARS and normalise(text) not in STOP_WORDS else None


def _phrases(query: str) -> Iterator[str]:
    found = [token for token in tokens(query) if token.script in (Script.CASED, Script.CASELESS)]
    for start, first in enumerate(found):
        if normalise(first.text) in STOP_WORDS:
            continue
        for end in range(start + 1, min(start + _MAX_PHRASE_TOKENS, len(found))):
            if not query[found[end - 1].end : found[end].start].isspace():
                break
            if normalise(found[end].text) not in STOP_WORDS:
                yield query[first.start : found[end].end]
