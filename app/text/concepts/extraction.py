"""What a text is about, as concepts: names, identifiers, numbers and words, with a key that needs no dictionary table.

Stateless and deterministic: the same text gives the same keys in every process, with no corpus statistics.
How many concepts of a passage are kept is decided by the lazy index.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b

from app.text.concepts.caseless import caseless_words
from app.text.concepts.names import CONNECTORS, MAX_NAME_TOKENS, NameRun, name_runs, parts
from app.text.concepts.stopwords import FUNCTION_WORDS, STOP_WORDS
from app.text.concepts.words import Lexeme, Script, Sentence, Token, normalise, tokens

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


_POSSESSIVES = ("'s", "’s")
_CACHED_NAMES = 65_536
_CACHED_CHARS = 100
# Normal form, key, surface, kind, whether it is from a script without capitals.
Mention = tuple[str, int, str, ConceptKind, bool]


@dataclass(slots=True)
class Concept:
    """One concept of a text. Not frozen: it is filled while the text is read, and a passage has dozens."""

    key: int  # signed 64 bits
    normal: str
    surface: str  # as first written
    kind: ConceptKind
    is_caseless: bool = False  # from a script without capitals, where names cannot be told from words
    sentences: tuple[int, ...] = ()  # indexes of those that hold it, ascending; empty if only the title does
    tf: int = 0  # occurrences in the sentences
    in_title: bool = False
    is_title: bool = False  # the whole title is this concept


@lru_cache(maxsize=131_072)
def concept_key(normal: str) -> int:
    """The signed 64-bit BLAKE2b key of a normal form (RFC 7693), as it fits a Postgres ``bigint``."""
    return int.from_bytes(blake2b(normal.encode(), digest_size=8).digest(), "big", signed=True)


def title_text(title: str) -> str:
    """A title without its parenthesised parts: ``Mercury (planet)`` is about ``Mercury``."""
    return _PARENTHESISED.sub("", title).strip()


def extract_concepts(sentences: Sequence[str], title: str = "") -> list[Concept]:
    """The concepts of a text in order of first appearance, those of the title first."""
    return concepts_of([Sentence(sentence, tokens(sentence)) for sentence in sentences], title)


def concepts_of(sentences: Iterable[Sentence], title: str = "") -> list[Concept]:
    """As `extract_concepts`, for sentences whose tokens are known."""
    found: dict[str, Concept] = {}
    for normal, key, surface, kind, is_caseless, is_title in _title_mentions(title):
        concept = found.get(normal)
        if concept is None:
            found[normal] = Concept(key, normal, surface, kind, is_caseless, (), 0, True, is_title)
        elif kind < concept.kind:
            concept.kind = kind
    for index, sentence in enumerate(sentences):
        here = (index,)
        for normal, key, surface, kind, is_caseless in _mentions(sentence):
            concept = found.get(normal)
            if concept is None:
                found[normal] = Concept(key, normal, surface, kind, is_caseless, here, 1)
                continue
            if kind < concept.kind:
                concept.kind = kind
            concept.tf += 1
            if concept.sentences[-1:] != here:
                concept.sentences += here
    return list(found.values())


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
            concepts.append(Concept(concept_key(normal), normal, surface, ConceptKind.PHRASE, sentences=(0,), tf=1))
    return concepts


@lru_cache(maxsize=1024)
def _title_mentions(title: str) -> tuple[tuple[str, int, str, ConceptKind, bool, bool], ...]:
    """The concepts of a title as (normal, key, surface, kind, from a script without capitals, is the title)."""
    name = title_text(title)
    whole = [(normal_form(form), form) for form in _title_forms(name)]
    mentions = [(normal, concept_key(normal), form, ConceptKind.NAME, False, True) for normal, form in whole]
    if whole:
        mentions += [
            (normal, key, surface, kind, is_caseless, False)
            for normal, key, surface, kind, is_caseless in _mentions(Sentence(name, tokens(name)))
        ]
    return tuple(mentions)


def _title_forms(name: str) -> Iterator[str]:
    """A title as it stands, and without its article, for texts speak of ``The Silver Tide`` as ``Silver Tide`` too."""
    if normalise(name):
        yield name
    first = next(iter(tokens(name)), None)
    if first is not None and first.start == 0 and first.lexeme.normal in FUNCTION_WORDS:
        rest = name[first.end :].strip()
        if rest and any(char.isalnum() for char in rest):
            yield rest


def normal_form(surface: str) -> str:
    """What a concept is told apart by."""
    return normalise(surface)[:MAX_CONCEPT_CHARS]


def _mentions(sentence: Sentence) -> list[Mention]:
    """Every mention in a sentence, names first."""
    found = sentence.tokens
    mentions: list[Mention] = []
    in_names: set[int] = set()
    for run in name_runs(sentence.text, found):
        names = _names(sentence.text, run)
        if names:
            mentions += names
            in_names.update([token[1] for token in run.tokens])
    said = [token[0].mentions for token in found]
    if None in said:
        said = [_outside_names(token[0]) for token in found]
    for token, known in zip(found, said, strict=True):
        if known and token[1] not in in_names:
            mentions += known
    return mentions


def _outside_names(lexeme: Lexeme) -> Sequence[Mention]:
    """What a token outside any name says: an identifier, a number or a word, the words of a script without capitals, or nothing."""
    if lexeme.mentions is not None:
        return lexeme.mentions
    if lexeme.script is not Script.CASED:
        words = [(normal_form(word), word) for word in caseless_words(lexeme)]
        said = tuple([(normal, concept_key(normal), word, ConceptKind.WORD, True) for normal, word in words])
    else:
        kind = _kind(lexeme)
        said = () if kind is None else (_mention(lexeme.normal[:MAX_CONCEPT_CHARS], lexeme.text, kind),)
    lexeme.mentions = said
    return said


def _kind(lexeme: Lexeme) -> ConceptKind | None:
    if lexeme.is_identifier:
        return ConceptKind.NAME
    text = lexeme.text
    if not any(char.isalpha() for char in text):
        is_number = sum(char.isdecimal() for char in text) >= MIN_NUMBER_DIGITS
        return ConceptKind.NUMBER if is_number else None
    return ConceptKind.WORD if len(text) >= MIN_WORD_CHARS and lexeme.normal not in STOP_WORDS else None


def _mention(normal: str, surface: str, kind: ConceptKind) -> Mention:
    return normal, concept_key(normal), surface, kind, False


def _names(sentence: str, run: NameRun) -> list[Mention]:
    """The whole run and its parts; nothing for a single plain word that only stands at the start of a sentence."""
    found, starts_sentence = run
    if len(found) == 1:
        first = found[0][0]
        if starts_sentence and not first.is_identifier:
            return []
        if first.name is None:
            first.name = _name(first.text)
        return [first.name]
    names = [_name_of(sentence, found)] if len(found) <= MAX_NAME_TOKENS else []
    if len(found) > MAX_NAME_TOKENS or not CONNECTORS.isdisjoint([token[0].text for token in found]):
        for piece in parts(found):
            is_name = len(piece) > 1 or len(piece[0].text) > 1
            if len(piece) <= MAX_NAME_TOKENS and is_name and piece[0][0].normal not in STOP_WORDS:
                names.append(_name_of(sentence, piece))
    return names


def _name_of(sentence: str, run: Sequence[Token]) -> Mention:
    surface = sentence[run[0][1] : run[-1][2]]
    return _short_name(surface) if len(surface) <= _CACHED_CHARS else _name(surface)


@lru_cache(maxsize=_CACHED_NAMES)
def _short_name(surface: str) -> Mention:
    return _name(surface)


def _name(surface: str) -> Mention:
    if surface.endswith(_POSSESSIVES):
        surface = surface[:-2]
    return _mention(normal_form(surface), surface, ConceptKind.NAME)


def _phrases(query: str) -> Iterator[str]:
    found = [token for token in tokens(query) if token.script in (Script.CASED, Script.CASELESS)]
    for start, first in enumerate(found):
        if first.lexeme.normal in STOP_WORDS:
            continue
        for end in range(start + 1, min(start + _MAX_PHRASE_TOKENS, len(found))):
            if not query[found[end - 1].end : found[end].start].isspace():
                break
            if found[end].lexeme.normal not in STOP_WORDS:
                yield query[first.start : found[end].end]
