"""The cache of a process: bounded, one builder a key, and never stale."""

import asyncio
from dataclasses import replace

import pytest

from app.retrieval.contract import SearchRequest, SearchResult
from app.retrieval.lazy.cache import ByteLimitedCache
from app.retrieval.lazy.engine import LazySearch
from tests.retrieval.corpora import Corpus


async def test_it_keeps_within_its_bytes_what_was_asked_for_last() -> None:
    cache: ByteLimitedCache[str] = ByteLimitedCache(10_000)
    for number in range(100):
        cache.put(number, "value", 600)
        assert cache.find(0) == "value", "what is asked for again and again stays"
        assert cache.used_bytes <= 10_000
    assert cache.find(99) == "value"
    assert cache.find(50) is None
    cache.put("too large", "value", 10_001)
    assert cache.find("too large") is None
    assert cache.find(99) == "value"


async def test_a_value_is_built_once_for_all_that_ask_meanwhile() -> None:
    cache: ByteLimitedCache[int] = ByteLimitedCache(10_000)
    may_finish = asyncio.Event()
    built = 0

    async def build() -> int:
        nonlocal built
        built += 1
        await may_finish.wait()
        return built

    askers = [asyncio.create_task(cache.get("key", build, lambda _: 8)) for _ in range(5)]
    await asyncio.sleep(0)
    askers[0].cancel()  # the builder gives up, and one that waits takes over
    may_finish.set()
    found = await asyncio.gather(*askers, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert sorted(found[1:]) == [(2, False), (2, True), (2, True), (2, True)]  # type: ignore[type-var]


async def test_a_failed_build_is_not_remembered() -> None:
    cache: ByteLimitedCache[int] = ByteLimitedCache(10_000)

    async def fail() -> int:
        raise ZeroDivisionError

    async def succeed() -> int:
        return 7

    with pytest.raises(ZeroDivisionError):
        await cache.get("key", fail, lambda _: 8)
    assert await cache.get("key", succeed, lambda _: 8) == (7, False)


async def ask(search: LazySearch, corpus: Corpus, version: int | None, mode: str = "lazy") -> SearchResult:
    workspace = replace(corpus.workspace, corpus_version=version)
    return await search.search(workspace, SearchRequest("Where do the herons of Lake Vell nest?", mode))


@pytest.mark.parametrize("mode", ["baseline", "lazy-wide"])
async def test_an_answer_is_remembered_until_the_corpus_moves(corpus: Corpus, mode: str) -> None:
    search = LazySearch(corpus.database, cache_bytes=2**20)
    first = await corpus.add("Herons", "The herons of Lake Vell nest in the reeds of Odd Island.")
    before = await ask(search, corpus, 1, mode)
    again = await ask(search, corpus, 1, mode)
    assert (before.details["cache"]["hit"], again.details["cache"]["hit"]) == (False, True)
    assert again.passages == before.passages
    assert set(again.stage_ms) == {"cache"}

    await corpus.add("Storks", "Storks of Lake Vell nest on the chimneys beside the herons.")
    after = await ask(search, corpus, 2, mode)
    assert after.details["cache"]["hit"] is False
    assert len(after.passages) == 2

    await corpus.remove(first)
    last = await ask(search, corpus, 3, mode)
    assert [passage.title for passage in last.passages] == ["Storks"]


async def test_postings_are_remembered_for_other_questions_about_the_same_concepts(corpus: Corpus) -> None:
    search = LazySearch(corpus.database, cache_bytes=2**20)
    for number in range(3):
        await corpus.add(f"Note {number}", f"Lake Vell has herons, says observer number {number} of Odd Island.")
    await ask(search, corpus, 1, "lazy-fast")
    other = await search.search(
        replace(corpus.workspace, corpus_version=1), SearchRequest("Who watched Lake Vell?", "lazy-fast")
    )
    assert other.details["cache"]["concepts"]["hits"] > 0
    moved = await search.search(
        replace(corpus.workspace, corpus_version=2), SearchRequest("Who watched Lake Vell?", "lazy-fast")
    )
    assert moved.details["cache"]["concepts"] == {"hits": 0, "misses": moved.details["cache"]["concepts"]["misses"]}
    assert moved.passages == other.passages


@pytest.mark.parametrize(("cache_bytes", "version"), [(0, 1), (2**20, None)])
async def test_nothing_is_remembered_without_room_or_without_a_corpus_version(
    corpus: Corpus, cache_bytes: int, version: int | None
) -> None:
    search = LazySearch(corpus.database, cache_bytes=cache_bytes)
    await corpus.add("Herons", "The herons of Lake Vell nest in the reeds of Odd Island.")
    for _ in range(2):
        assert (await ask(search, corpus, version)).details["cache"]["hit"] is False
