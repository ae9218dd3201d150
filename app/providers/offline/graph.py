"""Turns the names of a text into entities, and the sentences they share into relations."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.providers.offline.names import FoundName, find_names
from app.text.keywords import extract_keywords
from app.text.sentences import split_sentences

# Above this many names a sentence is a list, and its pairs say nothing.
_MAX_NAMES_IN_SENTENCE: Final = 8
_MAX_DESCRIPTION_CHARS: Final = 400
_DESCRIPTION_SENTENCES: Final = 2
_OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Entity:
    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class Relation:
    source: str
    target: str
    keywords: str
    description: str


def extract_graph(
    text: str, types: Sequence[str] = (), *, max_entities: int = 40
) -> tuple[list[Entity], list[Relation]]:
    """The entities and relations of a text, the most mentioned names first and relations between kept names only.

    Descriptions are sentences of the text. `types` are the entity types on offer; a type that is not among them becomes
    `Other`, or `concept` where none are offered.
    """
    sentences = [" ".join(sentence.split()) for sentence in split_sentences(text)]
    names = find_names(sentences)
    names = sorted(names, key=lambda name: (-len(name.sentences), name.sentences))[:max_entities]
    entities = [Entity(name.text, _offered(name.type, types), _describe(name, sentences)) for name in names]
    return entities, _relations(names, sentences)


def _offered(guess: str, types: Sequence[str]) -> str:
    if not types:
        return guess
    known = {offered.casefold(): offered for offered in types}
    return known.get(guess, known.get(_OTHER, types[0] if len(types) == 1 else "Other"))


def _describe(name: FoundName, sentences: Sequence[str]) -> str:
    return _clean(" ".join(sentences[index] for index in name.sentences[:_DESCRIPTION_SENTENCES]))


def _clean(text: str) -> str:
    """A description that cannot break a record of LightRAG's format, nor be taken for its list of descriptions."""
    flat = " ".join(text.split()).replace("<|", "< |").replace("<SEP>", "< SEP >")
    return flat if len(flat) <= _MAX_DESCRIPTION_CHARS else flat[: _MAX_DESCRIPTION_CHARS - 1].rstrip() + "…"


def _relations(names: Sequence[FoundName], sentences: Sequence[str]) -> list[Relation]:
    """One relation for each pair of names that share a sentence, pairs that share most first."""
    by_sentence: dict[int, list[FoundName]] = {}
    for name in names:
        for index in name.sentences:
            by_sentence.setdefault(index, []).append(name)
    shared: dict[tuple[str, str], list[int]] = {}
    for index in sorted(by_sentence):
        here = by_sentence[index]
        if len(here) <= _MAX_NAMES_IN_SENTENCE:
            for left, right in itertools.combinations(here, 2):
                shared.setdefault((left.text, right.text), []).append(index)
    pairs = sorted(shared.items(), key=lambda pair: (-len(pair[1]), pair[1]))
    return [
        Relation(source, target, _keywords(sentences[indexes[0]], source, target), _clean(sentences[indexes[0]]))
        for (source, target), indexes in pairs
    ]


def _keywords(sentence: str, source: str, target: str) -> str:
    """Up to three themes of the sentence beside the two names."""
    rest = sentence.replace(source, " ").replace(target, " ")
    themes = [theme.replace(",", " ") for theme in extract_keywords(rest).high if any(map(str.isalpha, theme))]
    return _clean(", ".join(themes[:3]))
