"""Recognises what a LightRAG prompt asks for, by the fixed phrases of its templates (lightrag-hku 1.5)."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.providers.contract import ChatMessage

FIELD: Final = "<|#|>"
DONE: Final = "<|COMPLETE|>"
_INPUT: Final = re.compile(r"---Input Text---\s*\n```\n?(.*?)\n?```\s*\n+---Output---", re.DOTALL)
_QUERY: Final = re.compile(r"---Real Data---\s*\nUser Query:(.*)\n---Output---", re.DOTALL)
_SUMMARY_NAME: Final = re.compile(r"^(?:Entity|Relation) Name: (.*)$", re.MULTILINE)
_MAX_RECORDS: Final = re.compile(r"at most (\d+) total")
_MAX_ENTITIES: Final = re.compile(r"at most (\d+) entity")
_TYPES: Final = re.compile(r"^---Entity Types---\n(.*?)(?:\n---|\Z)", re.DOTALL | re.MULTILINE)
_TYPE_LINE: Final = re.compile(r"^\s*[-*]\s*`?([^\s:`][^:`\n]*?)`?\s*(?::.*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ExtractionTask:
    text: str
    types: tuple[str, ...]  # the entity types offered, as written; empty where the prompt offers none
    max_entities: int
    max_records: int


@dataclass(frozen=True, slots=True)
class GleaningTask:
    """A second look at a text that was read already; the rules find nothing new in it."""


@dataclass(frozen=True, slots=True)
class KeywordsTask:
    query: str


@dataclass(frozen=True, slots=True)
class SummaryTask:
    name: str
    descriptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """A question to answer, which no rule can."""


Task = ExtractionTask | GleaningTask | KeywordsTask | SummaryTask | AnswerTask


def read_task(messages: Sequence[ChatMessage]) -> Task:
    """The task of a conversation; anything that is no prompt of LightRAG's counts as a question to answer."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    prompt = next((message.content for message in reversed(messages) if message.role == "user"), "")
    if prompt.startswith("---Task---\nBased on the last extraction task"):
        return GleaningTask()
    if prompt.startswith("---Task---\nExtract entities and relationships") and (text := _INPUT.search(prompt)):
        return ExtractionTask(
            text[1],
            tuple(_TYPE_LINE.findall((_TYPES.search(system) or _TYPES.search(prompt) or [""])[0])),
            _number(_MAX_ENTITIES, prompt, 40),
            _number(_MAX_RECORDS, prompt, 100),
        )
    if query := _QUERY.search(prompt):
        return KeywordsTask(query[1].strip())
    if "Description List:" in prompt and (name := _SUMMARY_NAME.search(prompt)):
        return SummaryTask(name[1].strip(), _descriptions(prompt.split("Description List:", 1)[1]))
    return AnswerTask()


def _number(pattern: re.Pattern[str], text: str, default: int) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else default


def _descriptions(listing: str) -> tuple[str, ...]:
    found = []
    for line in listing.splitlines():
        if line.startswith("{"):
            try:
                record = json.loads(line)
            except ValueError:
                continue  # a description that LightRAG cut to its token limit
            found.append(str(record.get("Description", "")))
    return tuple(filter(None, found))
