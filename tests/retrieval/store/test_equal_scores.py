"""Passages that score the same come in the order of their ids, wherever their rows lie."""

from sqlalchemy import text

from app.db.session import Database
from app.retrieval.store.postings import search_terms
from tests.retrieval.corpora import Corpus

COPIES = 6
FEW = 3
# A row that is written again lies behind all others.
AGAIN = (
    "UPDATE term_postings SET frequency = frequency WHERE workspace = :workspace AND passage_id = :passage",
    "UPDATE {table} SET version_id = version_id WHERE tenant_id = :tenant AND passage_id = :passage",
)


async def test_the_ids_break_ties_of_both_legs(corpus: Corpus, owner_database: Database) -> None:
    stored = [await corpus.add("Seals", "The seals of press 4 are green.") for _ in range(COPIES)]
    ids = [found.passage_ids[0] for found in stored]
    table = corpus.vectors._table
    async with owner_database.system() as session:
        for passage in reversed(ids[:-1]):
            scope = {"workspace": corpus.ref.number, "tenant": corpus.ref.tenant_id, "passage": passage}
            for statement in AGAIN:
                await session.execute(text(statement.format(table=table)), scope)
    [vector] = await corpus.workspace.embedding.embed(["green seals"], role="query")
    async with corpus.database.snapshot(corpus.ref.tenant_id) as session:
        words = await search_terms(session, corpus.ref, "green seals", FEW)
        near = await corpus.vectors.nearest(session, corpus.ref, vector, FEW, rows=COPIES)
        alike = await corpus.vectors.similarities(session, corpus.ref, vector, ids[::-1])
    assert len({hit.score for hit in (*words.hits, *alike)}) == 2
    assert [hit.passage_id for hit in words.hits] == ids[:FEW]
    assert [hit.passage_id for hit in near.hits] == ids[:FEW]
    assert [hit.passage_id for hit in alike] == ids
