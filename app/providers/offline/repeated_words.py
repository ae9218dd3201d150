"""For scripts without capitals and without rules here: places, and the words that a text repeats."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from app.providers.offline.gazetteer import place_names
from app.providers.offline.mentions import Mention
from app.text.concepts.extraction import ConceptKind, extract_concepts
from app.text.concepts.words import normalise

_MIN_OCCURRENCES: Final = 2
_MAX_WORDS: Final = 12


def repeated_words(sentences: Sequence[str], language: str) -> Iterator[Mention]:
    """Places of CLDR's tables, and up to 12 words that occur at least twice, as concepts."""
    places = place_names(language)
    concepts = [concept for concept in extract_concepts(sentences) if concept.is_caseless]
    counts = Counter({concept.normal: concept.tf for concept in concepts if concept.tf >= _MIN_OCCURRENCES})
    frequent = {normal for normal, _ in counts.most_common(_MAX_WORDS)}
    for concept in concepts:
        is_place = normalise(concept.surface) in places
        if is_place or (concept.normal in frequent and concept.kind is ConceptKind.WORD):
            for index in concept.sentences:
                position = max(0, sentences[index].find(concept.surface))
                yield Mention(concept.surface, "location" if is_place else "concept", index, position)
