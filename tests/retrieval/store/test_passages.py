"""Passages are stored exactly and come back from trusted versions only."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from app.retrieval.contract import PassageEvidence
from app.retrieval.store.passages import (
    StoredVersion,
    insert_passages,
    load_evidence,
    load_surroundings,
    passages_of_chunks,
)
from app.text.passages import PassageDraft
from tests.retrieval.corpora import Corpus, Stored, drafts


async def load(corpus: Corpus, ids: list[int], *, include_partial: bool = False) -> list[PassageEvidence]:
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        return await load_evidence(session, corpus.ref, ids, engine="lazy", include_partial=include_partial)


async def store(corpus: Corpus, title: str, found: list[PassageDraft], *, state: str = "ready") -> Stored:
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        version: StoredVersion = await corpus.add_version(session, title, state=state)
        rows = await insert_passages(session, version, title, found)
    return Stored(version.document_id, version.version_id, tuple(rows))


async def test_a_passage_comes_back_with_all_that_a_citation_needs(corpus: Corpus) -> None:
    draft = PassageDraft(0, "Größe „7“, \\ and ' stay.\"", 9, 3, 4, 100, 126, ("Teil I", 'A "b" {c}, d'), 1)
    stored = await store(corpus, "Handbuch", [draft])
    (found,) = await load(corpus, stored.passage_ids)
    assert (found.text, found.page_start, found.page_end, found.char_start, found.char_end, found.heading_path) == (
        draft.text, 3, 4, 100, 126, ("Teil I", 'A "b" {c}, d'),
    )  # fmt: skip
    assert (found.title, found.filename, found.document_id, found.version_id) == (
        "Handbuch", "a.txt", stored.document_id, stored.version_id,
    )  # fmt: skip


async def test_rows_come_in_the_order_of_the_drafts_and_evidence_in_the_order_asked(corpus: Corpus) -> None:
    stored = await store(corpus, "T", drafts([f"passage {number}" for number in range(2500)]))
    assert [row.text for row in stored.passages] == [f"passage {number}" for number in range(2500)]
    wanted = [stored.passage_ids[7], stored.passage_ids[2400], stored.passage_ids[3]]
    assert [found.text for found in await load(corpus, wanted)] == ["passage 7", "passage 2400", "passage 3"]


@pytest.mark.parametrize("state", ["queued", "running", "failed", "cancelled"])
async def test_a_version_that_is_not_ready_gives_no_evidence(corpus: Corpus, state: str) -> None:
    stored = await store(corpus, "T", drafts(["half done"]), state=state)
    assert await load(corpus, stored.passage_ids, include_partial=True) == []


async def test_a_partial_version_gives_evidence_on_demand_and_says_so(corpus: Corpus) -> None:
    stored = await store(corpus, "T", drafts(["mostly done"]), state="partial")
    assert await load(corpus, stored.passage_ids) == []
    assert [found.is_partial for found in await load(corpus, stored.passage_ids, include_partial=True)] == [True]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE documents SET deleting_at = now() WHERE id = :document",
        "UPDATE index_states SET cleanliness = 'purging' WHERE version_id = :version",
        "DELETE FROM live_versions WHERE version_id = :version",
        "UPDATE live_versions SET engine = 'graph' WHERE version_id = :version",
    ],
)
async def test_evidence_stops_with_the_change_that_ends_trust(corpus: Corpus, change: str) -> None:
    stored = await store(corpus, "T", drafts(["once trusted"]))
    assert len(await load(corpus, stored.passage_ids)) == 1
    parameter = {"document": stored.document_id} if ":document" in change else {"version": stored.version_id}
    await corpus.change(change, **parameter)
    assert await load(corpus, stored.passage_ids) == []


async def test_another_workspace_or_tenant_finds_nothing_by_id(corpus: Corpus, other_corpus: Corpus) -> None:
    stored = await store(corpus, "T", drafts(["mine"]))
    assert await load(other_corpus, stored.passage_ids) == []
    sibling = replace(corpus.ref, workspace_id=other_corpus.ref.workspace_id)
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        assert await load_evidence(session, sibling, stored.passage_ids, engine="lazy") == []


async def test_chunks_lead_to_their_passages_in_reading_order(corpus: Corpus) -> None:
    stored = await store(corpus, "T", drafts([f"p{number}" for number in range(5)]))
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        for ordinal, first, last in ((0, 0, 1), (1, 2, 4)):
            await session.execute(
                text(
                    "INSERT INTO chunks (tenant_id, workspace_id, version_id, ordinal, first_passage, last_passage, tokens)"
                    " VALUES (:tenant, :workspace, :version, :ordinal, :first, :last, 1)"
                ),
                {
                    "tenant": corpus.ref.tenant_id, "workspace": corpus.ref.workspace_id, "version": stored.version_id,
                    "ordinal": ordinal, "first": first, "last": last,
                },
            )  # fmt: skip
        asked = [(stored.version_id, 1), (stored.version_id, 0), (stored.version_id, 9)]
        found = await passages_of_chunks(session, corpus.ref, asked, engine="lazy")
        untrusted = await passages_of_chunks(session, corpus.ref, asked, engine="graph")
    assert {key[1]: [passage.text for passage in passages] for key, passages in found.items()} == {
        1: ["p2", "p3", "p4"],
        0: ["p0", "p1"],
    }
    assert untrusted == {}


async def test_a_citation_leads_to_the_passage_among_its_neighbours(corpus: Corpus) -> None:
    stored = await store(corpus, "T", drafts([f"p{number}" for number in range(5)]))
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        middle = await load_surroundings(session, corpus.ref, stored.passage_ids[2])
        start = await load_surroundings(session, corpus.ref, stored.passage_ids[0], around=2)
        gone = await load_surroundings(session, corpus.ref, 0)
    assert [found.text for found in middle] == ["p1", "p2", "p3"]
    assert [found.text for found in start] == ["p0", "p1", "p2"]
    assert gone == []
