"""Model answers line by line, where they are in the form that LightRAG asks for: names without its parser, which looks at
every field of every record for what models get wrong, and answers without the lines that nobody asks about.

LightRAG reads each line by itself, so what is left says the same as before.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from lightrag.prompt import PROMPTS
from lightrag.utils import normalize_entity_name

_DELIMITER: Final = re.escape(PROMPTS["DEFAULT_TUPLE_DELIMITER"])
_END: Final = PROMPTS["DEFAULT_COMPLETION_DELIMITER"]
# Nothing in these fields that LightRAG would repair, and no name so long that it would be cut.
_NAME: Final = r"[^<>|#\n]{1,120}"
_TYPE: Final = r"[A-Za-z][\w \-]*"
# A field that is blank is none, and a record without one of its fields is dropped.
_WORDS: Final = r"[^<>|\n]*[^\s<>|][^<>|\n]*"
_TEXT: Final = r"[^<>|\n]*[^\W\d_]{3}[^<>|\n]*"
_REGULAR: Final = re.compile(
    rf"entity{_DELIMITER}({_NAME}){_DELIMITER}({_TYPE}){_DELIMITER}{_TEXT}"
    rf"|relation{_DELIMITER}({_NAME}){_DELIMITER}({_NAME}){_DELIMITER}{_WORDS}{_DELIMITER}{_TEXT}"
)
# Types that LightRAG drops.
_RESERVED: Final = frozenset({"constructor", "prototype"})
_CACHED_NAMES = 65_536


class Line(NamedTuple):
    """One record: `names` holds an entity's name or both ends of a relation; nothing where LightRAG drops it."""

    text: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """What is to be read of answers: these entities, and relations between these pairs, either way round."""

    entities: Collection[str]
    pairs: Collection[tuple[str, str]]

    def has(self, names: tuple[str, ...]) -> bool:
        return names[0] in self.entities if len(names) == 1 else names in self.pairs or names[::-1] in self.pairs


_subject: ContextVar[Subject | None] = ContextVar("engine_answer_subject", default=None)


def regular_lines(answer: str) -> list[Line] | None:
    """The records of an answer, None if only LightRAG's parser can tell them."""
    lines = []
    for line in answer.split("\n"):
        record = line.strip()
        if not record or record == _END:
            continue
        found = _REGULAR.fullmatch(record)
        if found is None:
            return None
        entity, kind, source, target = found.groups()
        if kind is not None and kind.replace(" ", "").lower() in _RESERVED:
            return None
        names = (_normal(entity),) if entity is not None else (_normal(source), _normal(target))
        lines.append(Line(record, _told(names)))
    return lines


@contextmanager
def reading_about(entities: Collection[str], pairs: Collection[tuple[str, str]]) -> Iterator[None]:
    """Of answers that are read inside, only lines about these names are wanted."""
    token = _subject.set(Subject(frozenset(entities), frozenset(pairs)))
    try:
        yield
    finally:
        _subject.reset(token)


def wanted_part(answer: str, lines: Sequence[Line]) -> str:
    """The answer without what nobody asks about; as it is where all of it is wanted."""
    subject = _subject.get()
    if subject is None:
        return answer
    return "\n".join([*(line.text for line in lines if line.names and subject.has(line.names)), _END])


def _told(names: tuple[str, ...]) -> tuple[str, ...]:
    is_dropped = not all(map(str.strip, names)) or (len(names) == 2 and names[0] == names[1])
    return () if is_dropped else names


@lru_cache(maxsize=_CACHED_NAMES)
def _normal(name: str) -> str:
    return str(normalize_entity_name(name))
