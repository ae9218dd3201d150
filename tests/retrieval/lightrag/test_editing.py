"""Entities and relations made, edited and deleted by hand: every store agrees, and what people say lasts."""

from typing import Any
from uuid import uuid4

import pytest

from app.retrieval.contract import SearchRequest
from app.retrieval.entity_contract import ChangeRecord, EntityNotFound, MergeRequest, UndoBlocked
from app.retrieval.entity_edit_contract import EntityExists, InvalidEntity, RelationExists, RelationNotFound
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.search import GraphSearch
from tests.retrieval.lightrag.conftest import OURS_AND_AGE
from tests.retrieval.lightrag.doubles import Corpus, VersionChunks, ignore
from tests.retrieval.lightrag.graph_rows import differences, graph_rows

pytestmark = OURS_AND_AGE


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


class Hand:
    """Edits of one workspace, each with a record of its own."""

    def __init__(self, entities: GraphEntities, corpus: Corpus) -> None:
        self.entities, self.corpus = entities, corpus

    async def create(self, name: str, description: str = "Made by hand.", **fields: Any) -> Any:
        said = {"description": description, **fields}
        return await self.entities.create_entity(
            self.corpus.workspace, name, said, self.corpus.lease, record=ChangeRecord()
        )

    async def edit(self, name: str, **fields: Any) -> Any:
        return await self.entities.edit_entity(
            self.corpus.workspace, name, fields, self.corpus.lease, record=ChangeRecord()
        )

    async def delete(self, name: str) -> None:
        await self.entities.delete_entity(self.corpus.workspace, name, self.corpus.lease, record=ChangeRecord())

    async def relate(self, source: str, target: str, **fields: Any) -> Any:
        said = {"description": "Related by hand.", **fields}
        return await self.entities.create_relation(
            self.corpus.workspace, source, target, said, self.corpus.lease, record=ChangeRecord()
        )

    async def edit_relation(self, source: str, target: str, **fields: Any) -> Any:
        return await self.entities.edit_relation(
            self.corpus.workspace, source, target, fields, self.corpus.lease, record=ChangeRecord()
        )

    async def unrelate(self, source: str, target: str) -> None:
        await self.entities.delete_relation(
            self.corpus.workspace, source, target, self.corpus.lease, record=ChangeRecord()
        )


@pytest.fixture
def hand(entities: GraphEntities, corpus: Corpus) -> Hand:
    return Hand(entities, corpus)


async def test_what_was_made_by_hand_is_found_listed_and_stays_without_documents(
    index: GraphWriter, entities: GraphEntities, search: GraphSearch, corpus: Corpus, hand: Hand
) -> None:
    version = await ingest(index, corpus, "Ann Reed lives in Porto.")
    await hand.create("Hall B", "A hall of presses.", type="Building")
    relation = await hand.relate("Hall B", "Ann Reed", keywords="office", weight=2.0)
    assert (relation.source, relation.target, relation.weight, relation.document_ids) == ("Ann Reed", "Hall B", 2.0, ())
    listed = await entities.list(corpus.workspace, prefix=None, after=None, limit=9)
    assert [(found.name, found.degree) for found in listed] == [("Ann Reed", 2), ("Hall B", 1), ("Porto", 1)]
    found = await search.search(corpus.workspace, SearchRequest("Hall B of presses", "local"))
    assert "Hall B" in {entity.name for entity in found.entities}
    await index.remove(corpus.workspace, version.version_id, corpus.lease)
    detail = await entities.get(corpus.workspace, "hall b")
    assert (detail.type, detail.description, detail.relations, detail.chunks) == (
        "Building",
        "A hall of presses.",
        (),
        (),
    )


async def test_what_was_made_by_hand_forgets_what_is_taken_back(corpus: Corpus, hand: Hand) -> None:
    for name in ("Hall B", "Press 4"):
        await hand.create(name, "A secret text.", type="Building")
    await hand.relate("Hall B", "Press 4", keywords="a secret word", weight=2.0)
    taken_back = await hand.edit("Hall B", description=None)
    assert (taken_back.type, taken_back.description) == ("Building", "Hall B")
    assert (await hand.edit("Hall B", type=None)).type == "UNKNOWN"
    relation = await hand.edit_relation("Hall B", "Press 4", description=None, keywords=None)
    assert (relation.description, relation.keywords, relation.weight) == ("Hall B, Press 4", "", 2.0)


async def test_a_document_that_speaks_of_it_adds_its_chunks_and_not_its_words(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus, hand: Hand
) -> None:
    await hand.create("Porto", "A city, says a person.")
    first = await ingest(index, corpus, "Ann Reed lives in Porto.")
    found = await entities.get(corpus.workspace, "Porto")
    assert (found.description, found.type, len(found.chunks)) == ("A city, says a person.", "concept", 1)
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    found = await entities.get(corpus.workspace, "Porto")
    assert (found.description, found.chunks, found.relations) == ("A city, says a person.", (), ())


async def test_an_edit_lasts_until_it_is_taken_back_and_goes_with_the_last_document(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus, hand: Hand
) -> None:
    first = await ingest(index, corpus, "Ann Reed lives in Porto.")
    untouched = await graph_rows(pool, corpus)
    await hand.edit("Ann Reed", description="A sailor.", type="Person")
    await hand.edit_relation("Porto", "Ann Reed", weight=7.5, keywords="home")
    second = await ingest(index, corpus, "Ann Reed left Porto.")
    assert (await entities.get(corpus.workspace, "Ann Reed")).description == "A sailor."
    assert (await entities.get_relation(corpus.workspace, "Ann Reed", "Porto")).weight == 7.5
    await index.remove(corpus.workspace, second.version_id, corpus.lease)
    assert (await entities.get(corpus.workspace, "Ann Reed")).description == "A sailor."
    assert (await hand.edit("Ann Reed", description=None)).description == "Ann Reed lives in Porto."
    await hand.edit("Ann Reed", type=None)
    await hand.edit_relation("Ann Reed", "Porto", weight=None, keywords=None)
    assert differences(untouched, await graph_rows(pool, corpus)) == {}
    await hand.edit("Ann Reed", description="A sailor.")
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    rows = await graph_rows(pool, corpus)
    assert (rows["nodes"], rows["edits"], rows["entity_vectors"]) == ([], [], [])


async def test_deleting_leaves_no_row_behind(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus, hand: Hand
) -> None:
    """F19: chunk links stayed, and came back with the next document."""
    await ingest(index, corpus, "Ann Reed lives in Porto. Bob Stone knows Ann Reed.")
    await hand.edit("Ann Reed", description="A sailor.")
    await hand.unrelate("Bob Stone", "Porto")
    with pytest.raises(RelationNotFound):
        await entities.get_relation(corpus.workspace, "Porto", "Bob Stone")
    await hand.delete("ann reed")
    rows = await graph_rows(pool, corpus)
    rows.pop("anchors"), rows.pop("pairs")
    named = [
        row for found in rows.values() for row in found if any("Ann Reed" in str(part).split("<SEP>") for part in row)
    ]
    assert named == []
    with pytest.raises(EntityNotFound):
        await entities.get(corpus.workspace, "Ann Reed")
    later = await ingest(index, corpus, "Ann Reed came back.")
    assert (await entities.get(corpus.workspace, "Ann Reed")).chunks == ((later.version_id, 0),)


async def test_refusals_change_nothing(index: GraphWriter, pool: EngineDatabase, corpus: Corpus, hand: Hand) -> None:
    await ingest(index, corpus, "Ann Reed lives in Porto.")
    before = await graph_rows(pool, corpus)
    for refused, error in (
        (hand.create("ANN  reed"), EntityExists),
        (hand.create("a<SEP>b"), InvalidEntity),
        (hand.edit("Nobody", type="Person"), EntityNotFound),
        (hand.delete("Nobody"), EntityNotFound),
        (hand.relate("Ann Reed", "Porto"), RelationExists),
        (hand.relate("Ann Reed", "ann reed"), InvalidEntity),
        (hand.relate("Ann Reed", "Nobody"), EntityNotFound),
        (hand.edit_relation("Ann Reed", "Nobody", weight=2.0), EntityNotFound),
    ):
        with pytest.raises(error):
            await refused
    assert differences(before, await graph_rows(pool, corpus)) == {}


async def test_edits_go_along_with_a_merge_and_come_back_with_its_undoing(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus, hand: Hand
) -> None:
    await ingest(index, corpus, "Ann Reed lives in Porto.", "Annie Reed works in Braga.")
    await hand.edit("Annie Reed", description="A painter.")
    await hand.edit_relation("Annie Reed", "Braga", weight=4.0)
    await hand.create("Hall B")
    await hand.relate("Hall B", "Annie Reed")
    before = await graph_rows(pool, corpus)
    record = ChangeRecord(uuid4())
    request = MergeRequest(("Annie Reed",), "Ann Reed")
    merged = await entities.merge(corpus.workspace, request, corpus.lease, record=record)
    assert merged.description == "A painter.\nAnn Reed lives in Porto."
    assert {r.weight for r in merged.relations} == {1.0, 4.0}
    later = await ingest(index, corpus, "Ann Reed sings.")
    assert (await entities.get(corpus.workspace, "Ann Reed")).description == merged.description
    await index.remove(corpus.workspace, later.version_id, corpus.lease)
    await entities.undo(corpus.workspace, record.id, corpus.lease)
    assert differences(before, await graph_rows(pool, corpus)) == {}


async def test_edits_made_since_stay_with_the_target_or_block_the_undoing(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus, hand: Hand
) -> None:
    await ingest(index, corpus, "Ann Reed lives in Porto.", "Annie Reed works in Braga.")
    record = ChangeRecord(uuid4())
    await entities.merge(corpus.workspace, MergeRequest(("Annie Reed",), "Ann Reed"), corpus.lease, record=record)
    await hand.edit("Ann Reed", description="A sailor.")
    await hand.edit_relation("Ann Reed", "Braga", weight=3.0)
    before = await graph_rows(pool, corpus)
    with pytest.raises(UndoBlocked) as blocked:
        await entities.undo(corpus.workspace, record.id, corpus.lease)
    assert differences(before, await graph_rows(pool, corpus)) == {}
    assert blocked.value.facts["edits"] == [{"source": "Ann Reed", "target": "Braga"}]
    await hand.edit_relation("Ann Reed", "Braga", weight=None)
    await entities.undo(corpus.workspace, record.id, corpus.lease)
    assert (await entities.get(corpus.workspace, "Ann Reed")).description == "A sailor."
    assert (await entities.get(corpus.workspace, "Annie Reed")).description == "Annie Reed works in Braga."
