"""The names of a text for the offline extractor: fewer and surer than the concepts of the lazy index."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from app.providers.offline.arabic_names import arabic_names
from app.providers.offline.cased_names import cased_names
from app.providers.offline.chinese_names import chinese_names
from app.providers.offline.mentions import Mention
from app.providers.offline.repeated_words import repeated_words
from app.text.concepts.words import normalise
from app.text.languages import detect_language

MAX_NAME_CHARS: Final = 100
_MIN_LETTERS: Final = 2


@dataclass(frozen=True, slots=True)
class FoundName:
    """A name with its guessed type and the indexes of the sentences that hold it, ascending."""

    text: str
    type: str
    sentences: tuple[int, ...]


def find_names(sentences: Sequence[str]) -> list[FoundName]:
    """The names of a text given as sentences, in order of first appearance, one for each normal form."""
    language = detect_language(" ".join(sentences))
    mentions = [*cased_names(sentences, language), *_names_without_capitals(sentences, language)]
    return _merged(sorted(mentions, key=lambda mention: (mention.sentence, mention.start)))


def _names_without_capitals(sentences: Sequence[str], language: str) -> Iterable[Mention]:
    if language in ("zh", "ja"):
        return chinese_names(sentences, language)
    if language == "ar":
        return arabic_names(sentences)
    if language in ("hi", "th", "ko", "he"):
        return repeated_words(sentences, language)
    return ()


def _merged(mentions: Iterable[Mention]) -> list[FoundName]:
    found: dict[str, FoundName] = {}
    for mention in mentions:
        text = mention.text.strip(" .,;:'’\"-–·")
        if len(text) > MAX_NAME_CHARS or sum(map(str.isalpha, text)) < _MIN_LETTERS or "<|" in text:
            continue
        key = normalise(text)
        known = found.get(key)
        if known is None:
            found[key] = FoundName(text, mention.type, (mention.sentence,))
        elif mention.sentence not in known.sentences:
            kind = mention.type if known.type == "concept" else known.type
            found[key] = FoundName(known.text, kind, (*known.sentences, mention.sentence))
    return list(found.values())
