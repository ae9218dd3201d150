"""Many writers and readers at once, and changes in any order: the index is that of the documents that are there."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from app.db.models import ConceptPosting, LazyPassage, LazyVersion, TermPosting
from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.retrieval.budgets import LazyBudgets
from app.retrieval.contract import SearchRequest
from app.retrieval.lazy.engine import LazySearch
from tests.factories import Tenancy
from tests.retrieval.corpora import Corpus, Stored

TENANTS, CLIENTS, DOCUMENTS = 30, 16, 3
QUESTIONS = ("Who repaired the beacon of Cape Orrin?", "Which keeper lived in Port Salla?", "beacon keeper")
PLACES = ("Cape Orrin", "Port Salla", "Mount Hesk", "Lake Vell", "Tarn Bridge", "Isle of Sund")
PEOPLE = ("Ilse Brandt", "Jon Aske", "Mara Quist", "Per Holm", "Vera Lund")


@pytest.fixture
async def wide_database(urls: DatabaseUrls) -> AsyncIterator[Database]:
    """Connections enough for all to work at once."""
    database = Database(urls.app, pool_size=24)
    yield database
    await database.close()


def content(number: int, marker: str = "") -> str:
    place, other = PLACES[number % 6], PLACES[(number * 5 + 1) % 6]
    person, friend = PEOPLE[number % 5], PEOPLE[(number * 3 + 2) % 5]
    return (
        f"{person} repaired the beacon of {place} in {1900 + number}. {marker}\n\n"
        f"The keeper {friend} lived in {other}, number {number * 37}. {person} wrote to {friend}.\n\n"
        f"A beacon of {other} was lit by {friend} {number % 7} times. {marker}"
    )


async def rows(corpus: Corpus) -> dict[str, int]:
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        return {
            model.__tablename__: len(
                list(await session.scalars(select(model).where(model.workspace == corpus.ref.number)))
            )
            for model in (LazyPassage, ConceptPosting, TermPosting, LazyVersion)
        }


async def answers(corpus: Corpus) -> list[tuple[str, str, str, float]]:
    """Everything that any mode finds, with scores; equal ones in the order of their texts."""
    search, found = LazySearch(corpus.database), []
    for question in QUESTIONS:
        for mode in ("baseline", "lazy-fast", "lazy-wide"):
            budgets = LazyBudgets(max_context_chunks=100) if mode != "baseline" else LazyBudgets()
            request = SearchRequest(question, mode, top_k=100, budgets=budgets)
            result = await search.search(corpus.workspace, request)
            found += [(question, mode, passage.text, round(passage.score, 9)) for passage in result.passages]
    return sorted(found)


async def test_thirty_tenants_write_while_sixteen_clients_ask(
    owner_database: Database, wide_database: Database
) -> None:
    tenancies = [await Tenancy.create(owner_database, wide_database) for _ in range(TENANTS)]
    corpora = [await Corpus.create(tenancy) for tenancy in tenancies]
    markers = [f"Mark {number:02d}Q" for number in range(TENANTS)]
    writing = asyncio.Event()

    async def write(corpus: Corpus, marker: str) -> None:
        gone = await corpus.add("First", content(0, marker))
        for number in range(1, DOCUMENTS):
            await corpus.add(f"Document {number}", content(number, marker))
        await corpus.remove(gone)

    async def ask(client: int) -> int:
        search, asked, order = LazySearch(wide_database, cache_bytes=2**20), 0, random.Random(client)
        while not writing.is_set():
            mine = order.randrange(TENANTS)
            mode = order.choice(("baseline", "lazy-fast", "lazy", "lazy-wide"))
            result = await search.search(corpora[mine].workspace, SearchRequest(order.choice(QUESTIONS), mode))
            told = str(result)
            assert not [marker for marker in markers if marker in told and marker != markers[mine]]
            asked += 1
        return asked

    async with asyncio.timeout(240):
        clients = [asyncio.create_task(ask(client)) for client in range(CLIENTS)]
        await asyncio.gather(*(write(corpus, marker) for corpus, marker in zip(corpora, markers, strict=True)))
        writing.set()
        asked = await asyncio.gather(*clients)
    assert all(asked)
    sizes = [await rows(corpus) for corpus in corpora]
    assert all(size == sizes[0] for size in sizes)
    assert sizes[0]["lazy_versions"] == DOCUMENTS - 1


@pytest.mark.parametrize("seed", range(3))
async def test_changes_in_random_order_give_the_index_built_once(tenancy: Tenancy, seed: int) -> None:
    """Three writers at a time add and remove documents of one workspace; then all of them go."""
    order = random.Random(seed)
    changed, once = await Corpus.create(tenancy), await Corpus.create(tenancy)
    there: dict[int, Stored] = {}

    async def change(number: int) -> None:
        if number in there:
            await changed.remove(there.pop(number))
        else:
            there[number] = await changed.add(f"Report {number}", content(number))

    for _ in range(8):
        await asyncio.gather(*map(change, order.sample(range(12), 3)))
    kept = sorted(there)
    assert kept
    for number in kept:
        await once.add(f"Report {number}", content(number))
    assert await rows(changed) == await rows(once)
    assert await answers(changed) == await answers(once)
    for number in order.sample(kept, len(kept)):
        await change(number)
    assert not any((await rows(changed)).values())
