"""One place where a name stands in a text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mention:
    text: str
    type: str  # lower case, one of LightRAG's default entity types
    sentence: int  # index of the sentence
    start: int  # character offset in the sentence
