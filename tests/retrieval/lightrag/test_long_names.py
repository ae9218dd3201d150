"""Names of 600 characters: kept under a short key, shown and found whole, and gone with what they named."""

import pytest

from app.retrieval.contract import EntityEvidence, SearchRequest
from app.retrieval.entity_contract import ChangeRecord, MergeRequest
from app.retrieval.entity_graph_contract import Decisions
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.names import shorten
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.search import GraphSearch
from tests.retrieval.lightrag.conftest import ALL_STORES
from tests.retrieval.lightrag.doubles import Corpus, VersionChunks, ignore, records

pytestmark = ALL_STORES

LONG = "Act of " + "very long parliamentary title " * 19 + "(final)"
TYPO = LONG.replace("(final)", "(finall)")
OTHER = "Act of " + "very long parliamentary title " * 19 + "(draft)"
WIDE = "名" * 600


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


async def kept(pool: EngineDatabase, corpus: Corpus) -> set[str]:
    ref = corpus.workspace.ref
    with inside(ref):
        rows = await pool.fetch("SELECT whole FROM entity_names WHERE workspace_id = $1", ref.workspace_id)
    return {row["whole"] for row in rows}


async def test_long_names_are_shown_whole_everywhere(
    index: GraphWriter, entities: GraphEntities, search: GraphSearch, corpus: Corpus
) -> None:
    assert min(map(len, (LONG, OTHER, WIDE))) >= 580
    corpus.chat.answers["the acts"] = records("the acts.", [LONG, "Orbit Works", WIDE, OTHER])
    await ingest(index, corpus, "the acts.")
    workspace, names = corpus.workspace, {LONG, "Orbit Works", WIDE, OTHER}
    for asked in (LONG, LONG.upper(), shorten(LONG), f" {LONG} "):
        assert (await entities.get(workspace, asked)).name == LONG
    found = await entities.get(workspace, "Orbit Works")
    assert {end for relation in found.relations for end in (relation.source, relation.target)} == names - {OTHER}
    listed: list[str] = []
    while page := await entities.list(workspace, prefix=None, after=listed[-1] if listed else None, limit=1):
        listed += [entity.name for entity in page]
        assert len(page[0].key) <= 240
    assert len(listed) == 4
    assert set(listed) == names
    around = await entities.neighbours(workspace, LONG, depth=3, limit=9)
    assert {entity.name for entity, _ in around.entities} == names
    assert {end for relation in around.relations for end in (relation.source, relation.target)} == names
    ways = await entities.paths(workspace, LONG, OTHER, longest=4, limit=3)
    assert ways.paths == ((LONG, "Orbit Works", WIDE, OTHER),)
    exported = [item async for item in entities.export(workspace)]
    assert {item.name for item in exported if isinstance(item, EntityEvidence)} == names
    assert len(exported) == 4 + 3
    mentions = await entities.mentions(workspace, LONG, after=0, limit=9)
    assert {mention.name for mention in mentions} == {LONG}
    assert (await entities.search(workspace, "act of very long parliamentary title (draft)", limit=1))[0].name == OTHER
    result = await search.search(workspace, SearchRequest("What do the acts say of Orbit Works?", "mix"))
    assert {entity.name for entity in result.entities} == names
    assert {end for relation in result.relations for end in (relation.source, relation.target)} == names


async def test_long_names_merge_under_their_whole_names(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus
) -> None:
    corpus.chat.answers["the acts"] = records("the acts.", [LONG, "Orbit Works"])
    corpus.chat.answers["the drafts"] = records("the drafts.", [TYPO, "Orbit Works"])
    await ingest(index, corpus, "the acts.", "the drafts.")
    workspace = corpus.workspace
    groups = await entities.duplicates(workspace, min_score=0.75, decisions=Decisions(), limit=9)
    assert {LONG, TYPO} in [set(group.names) for group in groups]
    apart = Decisions(apart=frozenset({frozenset({LONG, TYPO})}))
    groups = await entities.duplicates(workspace, min_score=0.75, decisions=apart, limit=9)
    assert {LONG, TYPO} not in [set(group.names) for group in groups]
    target = "Law of " + "an even longer title " * 30
    preview = await entities.preview_merge(workspace, MergeRequest((LONG, TYPO), target))
    (relation,) = preview.relations
    assert {end for pair in relation.merged_from for end in pair} == {LONG, TYPO, "Orbit Works"}
    record = ChangeRecord()
    merged = await entities.merge(workspace, MergeRequest((LONG, TYPO), target), corpus.lease, record=record)
    assert merged.name == target.strip()
    assert {alias.alias for alias in await entities.aliases(workspace, after=None, limit=9)} == {LONG, TYPO}
    assert (await entities.get(workspace, LONG)).name == target.strip()
    assert {LONG, TYPO, target.strip()} <= set(await entities.names_of(workspace, TYPO))
    await entities.undo(workspace, record.id, corpus.lease)
    assert (await entities.get(workspace, LONG)).name == LONG


async def test_a_long_name_goes_with_its_last_document(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    corpus.chat.answers["the acts"] = records("the acts.", [LONG, "Orbit Works"])
    first, second = await ingest(index, corpus, "the acts."), await ingest(index, corpus, "the acts again.")
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    assert await kept(pool, corpus) == {LONG}
    await index.remove(corpus.workspace, second.version_id, corpus.lease, keep_answers=True)
    assert await kept(pool, corpus) == {LONG}
    await index.remove(corpus.workspace, second.version_id, corpus.lease)
    assert await kept(pool, corpus) == set()


async def test_a_long_name_by_hand_goes_with_its_entity(
    entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    workspace, lease, said = corpus.workspace, corpus.lease, {"description": "x"}
    made = await entities.create_entity(workspace, WIDE, said, lease, record=ChangeRecord())
    assert made.name == WIDE
    assert (await entities.edit_entity(workspace, WIDE, {"type": "Act"}, lease, record=ChangeRecord())).name == WIDE
    await entities.add_alias(workspace, LONG, WIDE, lease)
    (alias,) = await entities.aliases(workspace, after=None, limit=9)
    assert (alias.alias, alias.target) == (LONG, WIDE)
    assert await entities.aliases(workspace, after=LONG, limit=9) == []
    await entities.remove_alias(workspace, LONG, lease)
    assert await kept(pool, corpus) == {WIDE}
    await entities.delete_entity(workspace, WIDE, lease, record=ChangeRecord())
    assert await kept(pool, corpus) == set()
    with inside(workspace.ref):
        rows = await pool.fetch("SELECT names FROM entity_changes WHERE workspace_id = $1", workspace.ref.workspace_id)
    assert {name for row in rows for name in row["names"]} == {WIDE, LONG}


@pytest.mark.parametrize("other", [LONG.upper(), LONG.replace(" ", "  "), LONG.replace("title", "ｔitle")])
async def test_other_spellings_of_a_long_name_are_one_entity(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus, other: str
) -> None:
    corpus.chat.answers["one"] = records("one.", [LONG, "Orbit Works"])
    corpus.chat.answers["two"] = records("two.", [other, "Orbit Works"])
    await ingest(index, corpus, "one.")
    await ingest(index, corpus, "two.")
    names = [entity.name for entity in await entities.list(corpus.workspace, prefix=None, after=None, limit=9)]
    assert names == [LONG, "Orbit Works"]


async def test_no_record_keeps_a_long_name_that_is_gone(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    corpus.chat.answers["the acts"] = records("the acts.", [LONG, "Orbit Works"])
    version = await ingest(index, corpus, "the acts.")
    request = MergeRequest((LONG,), "Orbit Works")
    record = ChangeRecord(request={"sources": [LONG], "target": "Orbit Works"})
    await entities.merge(corpus.workspace, request, corpus.lease, record=record)
    await index.remove(corpus.workspace, version.version_id, corpus.lease)
    assert await kept(pool, corpus) == set()
    with inside(corpus.workspace.ref):
        for table in ("entity_changes", "entity_aliases", "entity_undo_records"):
            rows = await pool.fetch(f"SELECT to_jsonb(t)::text AS row FROM {table} t")
            assert "parliamentary" not in str([row["row"] for row in rows]), table
