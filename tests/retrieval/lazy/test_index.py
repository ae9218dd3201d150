"""The index is written and removed with its version, touches nobody else's rows, and leaves none behind."""

import asyncio

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from app.db.models import ConceptPosting, LazyPassage, LazyVersion, TermPosting
from app.retrieval.contract import SearchRequest
from app.retrieval.lazy.engine import LazySearch
from app.retrieval.store.passages import insert_passages
from tests.factories import Tenancy
from tests.retrieval.corpora import Corpus, paragraphs

DOCUMENTS = {
    "Ada Lovelace": "Ada Lovelace wrote notes on the Analytical Engine of Charles Babbage. They met in London in 1833.",
    "Charles Babbage": "Charles Babbage was born in London. He designed the Difference Engine.",
    "London Bridge": "London Bridge spans the Thames. It was rebuilt in 1973.",
    "Thames": "The Thames flows through Oxford and London to the North Sea.",
}


async def sizes(corpus: Corpus) -> dict[str, int]:
    """How many rows of the workspace each table of the index has."""
    found = {}
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        for model in (LazyPassage, ConceptPosting, TermPosting, LazyVersion):
            rows = await session.scalars(select(model).where(model.workspace == corpus.ref.number))
            found[model.__tablename__] = len(list(rows))
    return found


async def answers(corpus: Corpus) -> list[tuple[str, float]]:
    request = SearchRequest("Who designed an engine in London?", "lazy")
    result = await LazySearch(corpus.database).search(corpus.workspace, request)
    return [(passage.title, round(passage.score, 9)) for passage in result.passages]


async def test_removing_a_version_leaves_no_row_of_it(corpus: Corpus) -> None:
    stored = await corpus.add("Ada Lovelace", DOCUMENTS["Ada Lovelace"])
    assert all((await sizes(corpus)).values())
    await corpus.remove(stored)
    assert not any((await sizes(corpus)).values())


async def test_adding_and_removing_in_any_order_gives_the_index_built_once(corpus: Corpus, tenancy: Tenancy) -> None:
    for title, content in DOCUMENTS.items():
        await corpus.add(title, content)
    other = await Corpus.create(tenancy)
    extra = await other.add("Paris", "Paris lies on the Seine. Charles Babbage never designed an engine in Paris.")
    for title, content in reversed(DOCUMENTS.items()):
        again = await other.add(title, content)
        await other.remove(again)
        await other.add(title, content)
    await other.remove(extra)
    assert await sizes(other) == await sizes(corpus)
    assert await answers(other) == await answers(corpus)


async def test_removing_twice_or_what_was_never_indexed_is_no_error(corpus: Corpus) -> None:
    kept = await corpus.add("Thames", DOCUMENTS["Thames"])
    before = await sizes(corpus)
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        version = await corpus.add_version(session, "Never indexed")
        await corpus.index.remove(session, corpus.ref, version.version_id)
        await corpus.index.add(session, corpus.ref, "Empty", [])
    assert await sizes(corpus) == before
    await corpus.remove(kept)
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        await corpus.index.remove(session, corpus.ref, kept.version_id)


async def test_a_version_cannot_go_while_its_index_is_there(corpus: Corpus) -> None:
    stored = await corpus.add("Thames", DOCUMENTS["Thames"])
    with pytest.raises(IntegrityError, match="lazy_versions"):
        await corpus.change("DELETE FROM versions WHERE id = :id", id=stored.version_id)


@pytest.mark.parametrize("is_file_name", [False, True])
async def test_a_files_name_is_found_by_its_words_and_names_no_concept(corpus: Corpus, is_file_name: bool) -> None:
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        version = await corpus.add_version(session, "bread-recipes.md")
        passages = await insert_passages(session, version, "bread-recipes.md", paragraphs(DOCUMENTS["Thames"]))
        await corpus.index.add(session, corpus.ref, "bread-recipes.md", passages, is_file_name=is_file_name)
        rows = await session.execute(text("SELECT surfaces::text FROM lazy_passages"))
        found = "bread-recipes.md" in " ".join(rows.scalars())
    assert found is not is_file_name


async def test_a_rolled_back_upload_leaves_no_row(corpus: Corpus) -> None:
    async def fail_after_indexing() -> None:
        async with corpus.database.tenant(corpus.ref.tenant_id) as session:
            version = await corpus.add_version(session, "Thames")
            passages = await insert_passages(session, version, "Thames", paragraphs(DOCUMENTS["Thames"]))
            await corpus.index.add(session, corpus.ref, "Thames", passages)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_after_indexing()
    assert not any((await sizes(corpus)).values())


async def test_writers_of_one_workspace_neither_wait_for_each_other_nor_mix(
    corpus: Corpus, other_corpus: Corpus
) -> None:
    """Ten rounds, each with two open transactions of one workspace and one of another tenant (case C2)."""
    for _ in range(10):
        async with asyncio.timeout(30):
            first, second, foreign = await asyncio.gather(
                corpus.add("Ada Lovelace", DOCUMENTS["Ada Lovelace"]),
                corpus.add("Charles Babbage", DOCUMENTS["Charles Babbage"]),
                other_corpus.add("Ada Lovelace", DOCUMENTS["Ada Lovelace"]),
            )
            await asyncio.gather(corpus.remove(first), corpus.remove(second), other_corpus.remove(foreign))
    assert not any((await sizes(corpus)).values())
    assert not any((await sizes(other_corpus)).values())


async def test_a_writer_does_not_wait_for_an_open_writer_of_the_same_concepts(corpus: Corpus) -> None:
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        await session.execute(text("SET LOCAL lock_timeout = '2s'"))
        stored = await corpus.add("Thames", DOCUMENTS["Thames"])
        await corpus.index.remove(session, corpus.ref, stored.version_id)
        async with asyncio.timeout(10):
            await corpus.add("Thames", DOCUMENTS["Thames"])
