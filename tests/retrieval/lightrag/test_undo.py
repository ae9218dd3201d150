"""Undoing merges: every row is as it would be had the merge not happened, later documents included."""

from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest

from app.providers.contract import Purpose
from app.retrieval.entity_contract import ChangeNotFound, ChangeRecord, EntityDetail, MergeRequest, UndoBlocked
from app.retrieval.entity_edit_contract import InvalidEntity
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase
from tests.retrieval.lightrag.conftest import OURS_AND_AGE
from tests.retrieval.lightrag.doubles import Corpus, VersionChunks, ignore, records
from tests.retrieval.lightrag.graph_rows import differences, graph_rows

pytestmark = OURS_AND_AGE


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


async def merge(entities: GraphEntities, corpus: Corpus, sources: str | Sequence[str], target: str) -> UUID:
    record = ChangeRecord(uuid4())
    names = (sources,) if isinstance(sources, str) else tuple(sources)
    await entities.merge(corpus.workspace, MergeRequest(names, target), corpus.lease, record=record)
    return record.id


async def undo(entities: GraphEntities, corpus: Corpus, change: UUID) -> None:
    await entities.undo(corpus.workspace, change, corpus.lease)


FIRST = ("Ann Reed met Annie Reed in Porto.", "Annie Reed works in Braga.")
SECOND = ("Ann Reed owns Orbit Works.", "Orbit Works is in Porto. Annie Reed knows Orbit Works.")
LATER = ("Annie Reed moved to Faro.", "Ann Reed stayed in Porto. Annie Reed wrote to Ann Reed.")


async def test_an_undone_merge_leaves_no_mark(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, *FIRST)
    await ingest(index, corpus, *SECOND)
    before = await graph_rows(pool, corpus)
    change = await merge(entities, corpus, "Annie Reed", "Ann Reed")
    await undo(entities, corpus, change)
    assert differences(before, await graph_rows(pool, corpus)) == {}
    assert corpus.chat.count(Purpose.EXTRACT) == 4


async def test_later_documents_are_told_apart_too(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus, other_corpus: Corpus
) -> None:
    for texts in (FIRST, SECOND):
        await ingest(index, corpus, *texts)
        await ingest(index, other_corpus, *texts)
    change = await merge(entities, corpus, "Annie Reed", "Ann Reed")
    for each in (corpus, other_corpus):
        await ingest(index, each, *LATER)
    await undo(entities, corpus, change)
    found, wanted = await names_and_links(pool, corpus), await names_and_links(pool, other_corpus)
    assert found == wanted


async def names_and_links(pool: EngineDatabase, corpus: Corpus) -> object:
    """What does not hold the ids of versions."""
    rows = await graph_rows(pool, corpus)
    return (
        [(row[0], row[2]) for row in rows["entity_chunks"]],
        [(row[0], row[2]) for row in rows["relation_chunks"]],
        [row[1:4] for row in rows["entity_vectors"]],
        [row[1:5] for row in rows["relation_vectors"]],
        sorted(row[1:] for row in rows["mentions"] if row[3] is None),
        rows["aliases"],
        sorted(row[1] for row in rows["anchors"]),
    )


async def test_several_sources_and_a_new_name(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, *FIRST)
    before = await graph_rows(pool, corpus)
    change = await merge(entities, corpus, ["Annie Reed", "Ann Reed", "Braga"], "The Reeds")
    assert "Ann Reed" not in str((await graph_rows(pool, corpus))["nodes"]).replace("Ann Reed met", "")
    await undo(entities, corpus, change)
    assert differences(before, await graph_rows(pool, corpus)) == {}


@pytest.mark.parametrize("order", [(2, 1, 0), (0, 1, 2), (1, 0, 2), (1, 2, 0)])
async def test_chains_are_undone_in_any_order(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus, order: tuple[int, ...]
) -> None:
    corpus.chat.answers["letters"] = records("letters.", ["Alpha", "Beta", "Gamma", "Delta"])
    await ingest(index, corpus, "letters.")
    await ingest(index, corpus, "Alpha knows Xi.", "Beta knows Xi. Gamma knows Rho.")
    before = await graph_rows(pool, corpus)
    pairs = [("Alpha", "Beta"), ("Beta", "Gamma"), ("Gamma", "Delta")]
    changes = [await merge(entities, corpus, source, target) for source, target in pairs]
    for n in order:
        await undo(entities, corpus, changes[n])
    assert differences(before, await graph_rows(pool, corpus)) == {}


async def test_a_circle_is_undone_from_its_end(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, "Alpha met Beta. Gamma met Delta.")
    states, changes = [await graph_rows(pool, corpus)], []
    for source, target in (("Alpha", "Beta"), ("Beta", "Gamma"), ("Gamma", "Alpha")):
        changes.append(await merge(entities, corpus, source, target))
        states.append(await graph_rows(pool, corpus))
    with pytest.raises(UndoBlocked) as blocked:
        await undo(entities, corpus, changes[0])
    assert blocked.value.facts["changes"] == [str(changes[2])]
    assert differences(states[3], await graph_rows(pool, corpus)) == {}
    for change in reversed(changes):
        await undo(entities, corpus, change)
    assert differences(states[0], await graph_rows(pool, corpus)) == {}
    with pytest.raises(ChangeNotFound):
        await undo(entities, corpus, changes[0])


async def test_names_of_any_kind_come_back(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    names = ["a/b\\c", "'; DROP TABLE x; --", "名" * 300, "tab\there", "🚀 {0} %s $$"]
    corpus.chat.answers["hostile"] = records("a hostile text.", [*names, "Plain"])
    await ingest(index, corpus, "a hostile text.")
    before = await graph_rows(pool, corpus)
    change = await merge(entities, corpus, names, "Plain")
    assert len((await graph_rows(pool, corpus))["nodes"]) == 1
    await undo(entities, corpus, change)
    assert differences(before, await graph_rows(pool, corpus)) == {}


async def test_an_undo_after_a_removal_brings_nothing_of_the_document_back(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    first = await ingest(index, corpus, "Ann Reed lives in Porto.")
    await ingest(index, corpus, "Annie Reed works in Braga.")
    change = await merge(entities, corpus, "Annie Reed", "Ann Reed")
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    await undo(entities, corpus, change)
    rows = await graph_rows(pool, corpus)
    assert [row[0] for row in rows["nodes"]] == ["Annie Reed", "Braga"]
    assert "Porto" not in str(rows)


async def test_a_lost_answer_blocks_and_changes_nothing(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, *FIRST)
    change = await merge(entities, corpus, "Annie Reed", "Ann Reed")
    before = await graph_rows(pool, corpus)
    from app.retrieval.lightrag.pool import inside  # noqa: PLC0415

    with inside(corpus.workspace.ref):
        await pool.fetch("DELETE FROM lightrag_llm_cache WHERE workspace = $1", corpus.workspace.ref.engine_name)
    with pytest.raises(UndoBlocked) as blocked:
        await undo(entities, corpus, change)
    assert blocked.value.facts == {"chunks_missing": 2}
    assert differences(before, await graph_rows(pool, corpus)) == {}


async def test_a_split_assigns_chunks_lasts_and_is_undone(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    corpus.chat.answers["mercury"] = records("mercury is a planet.", ["Mercury", "Sun"])
    corpus.chat.answers["quicksilver"] = records("quicksilver is a metal.", ["Mercury", "Thermometer"])
    version = await ingest(index, corpus, "mercury is a planet.", "quicksilver is a metal.")
    before = await graph_rows(pool, corpus)
    record = ChangeRecord(uuid4())
    parts = {"Mercury (metal)": [(version.version_id, 1)]}
    (metal,) = await entities.split(corpus.workspace, "mercury", parts, corpus.lease, record=record)
    assert (metal.name, metal.description) == ("Mercury (metal)", "quicksilver is a metal.")
    assert [(r.source, r.target) for r in metal.relations] == [("Mercury (metal)", "Thermometer")]
    planet = await entities.get(corpus.workspace, "Mercury")
    assert (planet.description, planet.chunks) == ("mercury is a planet.", ((version.version_id, 0),))
    later = await ingest(index, corpus, "Mercury shines. Thermometer broke.")
    await index.remove(corpus.workspace, later.version_id, corpus.lease)
    assert (await entities.get(corpus.workspace, "Mercury")).description == "mercury is a planet."
    await undo(entities, corpus, record.id)
    assert differences(before, await graph_rows(pool, corpus)) == {}


async def test_a_split_that_would_lose_an_edit_is_refused_and_changes_nothing(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    corpus.chat.answers["mercury"] = records("mercury is a planet.", ["Mercury", "Sun"])
    corpus.chat.answers["quicksilver"] = records("quicksilver is a metal.", ["Mercury", "Thermometer"])
    version = await ingest(index, corpus, "mercury is a planet.", "quicksilver is a metal.")
    edit = {"description": "Rises in it."}
    await entities.edit_relation(corpus.workspace, "Mercury", "Thermometer", edit, corpus.lease, record=ChangeRecord())
    before = await graph_rows(pool, corpus)
    with pytest.raises(UndoBlocked):
        await entities.split(corpus.workspace, "Mercury", {"Metal": [(version.version_id, 1)]}, corpus.lease)
    assert differences(before, await graph_rows(pool, corpus)) == {}


async def shown(entities: GraphEntities, corpus: Corpus) -> dict[str, EntityDetail]:
    listed = await entities.list(corpus.workspace, prefix=None, after=None, limit=99)
    return {found.name: await entities.get(corpus.workspace, found.name) for found in listed}


@pytest.mark.parametrize("is_newest_first", [True, False])
async def test_a_part_is_split_again_and_after_a_merge(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus, is_newest_first: bool
) -> None:
    texts = ("mercury is a planet.", "quicksilver is a metal.", "mercury messenger is a god.")
    for said, other in zip(texts, ("Sun", "Thermometer", "Rome"), strict=True):
        corpus.chat.answers[said] = records(said, ["Mercury", other])
    version = (await ingest(index, corpus, *texts)).version_id
    seen = [await shown(entities, corpus)]
    changes = []

    async def split(name: str, to: str, *ordinals: int) -> None:
        record = ChangeRecord(uuid4())
        parts = {to: [(version, n) for n in ordinals]}
        (made,) = await entities.split(corpus.workspace, name, parts, corpus.lease, record=record)
        assert (made.name, [n for _, n in made.chunks]) == (to, list(ordinals))
        changes.append(record.id)
        seen.append(await shown(entities, corpus))

    await split("Mercury", "Other Mercury", 1, 2)
    await split("Other Mercury", "Mercury (god)", 2)
    changes.append(await merge(entities, corpus, "Other Mercury", "Hg"))
    seen.append(await shown(entities, corpus))
    await split("Hg", "Mercury (metal)", 1)
    assert list(seen[-1]) == ["Mercury", "Mercury (god)", "Mercury (metal)", "Rome", "Sun", "Thermometer"]
    if is_newest_first:
        for change, before in zip(reversed(changes), reversed(seen[:-1]), strict=True):
            await undo(entities, corpus, change)
            assert await shown(entities, corpus) == before
    else:
        await undo(entities, corpus, changes[0])
        assert [n for _, n in (await entities.get(corpus.workspace, "Mercury")).chunks] == [0, 1, 2]
        assert list(await shown(entities, corpus)) == ["Mercury", "Rome", "Sun", "Thermometer"]


async def test_a_part_goes_back_by_undoing_its_split_only(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    version = (await ingest(index, corpus, "Ann Reed sings.", "Ann Reed sails.")).version_id
    await entities.split(corpus.workspace, "Ann Reed", {"Ann (2)": [(version, 1)]}, corpus.lease)
    before = await graph_rows(pool, corpus)
    with pytest.raises(InvalidEntity, match="undo that one"):
        await entities.split(corpus.workspace, "Ann (2)", {"Ann Reed": [(version, 1)]}, corpus.lease)
    assert differences(before, await graph_rows(pool, corpus)) == {}


async def test_a_split_refuses_chunks_that_say_nothing_of_it(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    version = await ingest(index, corpus, "Ann Reed sings.", "Bob Stone sings.")
    before = await graph_rows(pool, corpus)
    for parts in (
        {"Ann (2)": [(version.version_id, 1)]},
        {"ANN  reed": [(version.version_id, 0)]},
        {"A": [(version.version_id, 0)], "B": [(version.version_id, 0)]},
        {},
    ):
        with pytest.raises(InvalidEntity):
            await entities.split(corpus.workspace, "Ann Reed", parts, corpus.lease)
    assert differences(before, await graph_rows(pool, corpus)) == {}
