"""What a process remembers between queries: finished evidence and postings of concepts, together bounded in bytes.

Every key holds a corpus version, so nothing has to be invalidated: after any change the old entries are never asked
for again and fall out as the least recently used. Postings go by the version of the snapshot that they are read in,
evidence by that of the opened workspace, and it is kept only where its snapshot had the same.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from sys import getsizeof, maxsize
from typing import Any, Generic, TypeVar

from app.retrieval.contract import EngineWorkspace, SearchRequest, SearchResult
from app.retrieval.deadline import is_cut
from app.retrieval.lazy.store import Postings

Value = TypeVar("Value")

_ENTRY_BYTES = 400  # key, entry and their places in the dictionaries
_PASSAGE_BYTES = 2_000  # a passage's evidence beside its text
_VISIT_BYTES = 1_200  # a concept's part of the explanation
_POSTING_BYTES = 130  # a pair of numbers in a list


class ByteLimitedCache(Generic[Value]):
    """The most recently used values within `limit_bytes`; one builder a key at a time, for one event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._building: dict[Hashable, asyncio.Event] = {}
        self.used_bytes = 0

    @property
    def is_off(self) -> bool:
        return self._limit <= 0

    def find(self, key: Hashable) -> Value | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Keep a value of about `size` bytes, at the cost of those that nobody asked for the longest."""
        self._drop(key)
        if size + _ENTRY_BYTES > self._limit:
            return
        self._entries[key] = value, size + _ENTRY_BYTES
        self.used_bytes += size + _ENTRY_BYTES
        while self.used_bytes > self._limit:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.used_bytes -= entry[1]

    async def get(
        self, key: Hashable, build: Callable[[], Awaitable[Value]], size_of: Callable[[Value], int]
    ) -> tuple[Value, bool]:
        """The value and whether it was there. Whoever asks while it is built waits, and builds it if that fails."""
        while (waiting := self._building.get(key)) is not None:
            await waiting.wait()
        found = self.find(key)
        if found is not None:
            return found, True
        done = self._building[key] = asyncio.Event()
        try:
            built = await build()
            self.put(key, built, size_of(built))
        finally:
            del self._building[key]
            done.set()
        return built, False


@dataclass(frozen=True)
class SearchCache:
    """The caches of a process: half of the bytes for evidence, most of the rest for postings."""

    evidence: ByteLimitedCache[SearchResult]
    postings: ByteLimitedCache[list[tuple[int, int]]]
    untrusted: ByteLimitedCache[frozenset[int]]

    @classmethod
    def of_bytes(cls, limit_bytes: int) -> "SearchCache":
        half, rest = limit_bytes // 2, limit_bytes // 16
        return cls(ByteLimitedCache(half), ByteLimitedCache(half - rest), ByteLimitedCache(rest))


async def postings_through(
    cache: ByteLimitedCache[list[tuple[int, int]]],
    scope: tuple[Any, ...] | None,
    keys: Iterable[int],
    load: Callable[[list[int]], Awaitable[Postings]],
) -> tuple[Postings, int]:
    """The postings of concepts, and how many of them were remembered; `scope` None remembers nothing.

    Concepts without postings are remembered as well. Two queries that miss the same concept both read it: that is
    cheaper than to hold one's connection while waiting for the other.
    """
    wanted = list(keys)
    known: dict[int, list[tuple[int, int]]] = {}
    if scope is not None:
        found = ((key, cache.find((*scope, key))) for key in wanted)
        known = {key: postings for key, postings in found if postings is not None}
    missing = [key for key in wanted if key not in known]
    loaded: Mapping[int, Any] = await load(missing) if missing else {}
    if scope is not None:
        for key in missing:
            postings = list(loaded.get(key, ()))
            cache.put((*scope, key), postings, _POSTING_BYTES * len(postings))
    return {**known, **loaded}, len(known)


def evidence_key(workspace: EngineWorkspace, request: SearchRequest) -> Hashable | None:
    """All that decides an answer; None where the corpus version is not known."""
    if workspace.corpus_version is None:
        return None
    return (workspace.ref, workspace.vector_suffix, workspace.corpus_version, request)


def evidence_bytes(workspace: EngineWorkspace, result: SearchResult) -> int:
    """About what a result takes in memory; more than any cache has for one that is not to be kept: it lacks a leg, which
    another query may have, or is of another corpus version than the workspace was opened at."""
    if is_cut() or result.details["cache"]["corpus_version"] != workspace.corpus_version:
        return maxsize
    texts = sum(getsizeof(passage.text) + _PASSAGE_BYTES for passage in result.passages)
    return texts + _VISIT_BYTES * len(result.details.get("visited_concepts", ()))
