"""The cache of a process: bounded, one builder a key, and never stale."""

import asyncio
from dataclasses import replace

import pytest

from app.retrieval.contract import SearchRequest, SearchResult
from app.retrieval.lazy.cache import ByteLimitedCache
from app.retrieval.lazy.engine import LazySearch
from tests.retrieval.corpora import Corpus, Stored


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


QUESTION = SearchRequest("Where do the herons of Lake Vell nest?", "lazy-wide")
OTHER_QUESTION = SearchRequest("Who watched Lake Vell?", "lazy-wide")


@pytest.mark.parametrize("mode", ["baseline", "lazy-wide"])
async def test_an_answer_is_remembered_until_the_corpus_moves(corpus: Corpus, mode: str) -> None:
    async def ask() -> SearchResult:
        return await search.search(await corpus.opened(), replace(QUESTION, mode=mode))

    search = LazySearch(corpus.database, cache_bytes=2**20)
    first = await corpus.add("Herons", "The herons of Lake Vell nest in the reeds of Odd Island.")
    before, again = await ask(), await ask()
    assert (before.details["cache"]["hit"], again.details["cache"]["hit"]) == (False, True)
    assert again.passages == before.passages
    assert set(again.stage_ms) == {"cache"}

    await corpus.add("Storks", "Storks of Lake Vell nest on the chimneys beside the herons.")
    after = await ask()
    assert after.details["cache"]["hit"] is False
    assert len(after.passages) == 2

    await corpus.remove(first)
    assert [passage.title for passage in (await ask()).passages] == ["Storks"]


async def add_notes(corpus: Corpus) -> list[Stored]:
    text = "Lake Vell has herons, says observer number {0} of Odd Island."
    return [await corpus.add(f"Note {number}", text.format(number)) for number in range(3)]


async def test_postings_are_remembered_for_other_questions_about_the_same_concepts(corpus: Corpus) -> None:
    search = LazySearch(corpus.database, cache_bytes=2**20)
    await add_notes(corpus)
    await search.search(await corpus.opened(), QUESTION)
    other = await search.search(await corpus.opened(), OTHER_QUESTION)
    assert other.details["cache"]["concepts"]["hits"] > 0


@pytest.mark.parametrize("change", ["added", "hidden"])
async def test_what_changes_after_a_workspace_was_opened_is_not_mixed_with_what_was_remembered(
    corpus: Corpus, change: str
) -> None:
    search = LazySearch(corpus.database, cache_bytes=2**20)
    notes = await add_notes(corpus)
    opened = await corpus.opened()
    await search.search(opened, QUESTION)
    if change == "added":
        await corpus.add("Note 3", "Lake Vell has herons, says observer number 3 of Odd Island.")
    else:
        await corpus.hide(notes[0])
    found = await search.search(opened, OTHER_QUESTION)
    fresh = await LazySearch(corpus.database).search(opened, OTHER_QUESTION)
    assert found.passages == fresh.passages
    for part in ("visited_concepts", "passages", "relevance_tests"):
        assert found.details[part] == fresh.details[part]
    assert found.details["cache"]["corpus_version"] == (await corpus.opened()).corpus_version


async def test_an_answer_of_a_later_corpus_is_not_remembered_as_one_of_the_version_that_was_opened(
    corpus: Corpus,
) -> None:
    search = LazySearch(corpus.database, cache_bytes=2**20)
    opened = await corpus.opened()
    await corpus.add("Herons", "The herons of Lake Vell nest in the reeds of Odd Island.")
    for _ in range(2):
        assert (await search.search(opened, QUESTION)).details["cache"]["hit"] is False


@pytest.mark.parametrize(("cache_bytes", "has_version"), [(0, True), (2**20, False)])
async def test_nothing_is_remembered_without_room_or_without_a_corpus_version(
    corpus: Corpus, cache_bytes: int, has_version: bool
) -> None:
    search = LazySearch(corpus.database, cache_bytes=cache_bytes)
    await corpus.add("Herons", "The herons of Lake Vell nest in the reeds of Odd Island.")
    workspace = await corpus.opened() if has_version else corpus.workspace
    for _ in range(2):
        assert (await search.search(workspace, QUESTION)).details["cache"]["hit"] is False
