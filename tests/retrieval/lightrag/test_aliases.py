"""Aliases: a merged name does not come back, whatever is inserted, removed, replaced or merged after it."""

import json

import pytest

from app.providers.contract import Purpose
from app.retrieval.contract import SearchRequest, VersionChunks
from app.retrieval.entity_contract import AliasNotFound, AliasTaken, InvalidAlias, InvalidMerge, MergeRequest
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.names import entity_key
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.search import GraphSearch
from tests.retrieval.lightrag.doubles import Corpus, ignore, records


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


async def graph(pool: EngineDatabase, corpus: Corpus) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """Nodes with their descriptions, and edges."""
    with inside(corpus.workspace.ref):
        nodes = await pool.fetch("SELECT id, properties->>'description' AS said FROM lightrag_graph_nodes")
        edges = await pool.fetch("SELECT src_id, tgt_id FROM lightrag_graph_edges")
    return {row["id"]: row["said"] for row in nodes}, {(row["src_id"], row["tgt_id"]) for row in edges}


async def mentions(pool: EngineDatabase, corpus: Corpus) -> set[str]:
    with inside(corpus.workspace.ref):
        rows = await pool.fetch(
            "SELECT name, target FROM mentions WHERE workspace_id = $1", corpus.workspace.ref.workspace_id
        )
    return {name for row in rows for name in (row["name"], row["target"]) if name}


async def everything(pool: EngineDatabase, corpus: Corpus) -> str:
    """All that the engine's tables hold of the workspace, but for the model's raw answers."""
    with inside(corpus.workspace.ref):
        tables = await pool.fetch(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relname LIKE 'lightrag%'"
            " AND relname NOT LIKE '%cache'"
        )
        found = [
            await pool.fetch(
                f"SELECT t::text FROM {row['relname']} t WHERE workspace = $1", corpus.workspace.ref.engine_name
            )
            for row in tables
        ]
    return str(found)


async def merge(entities: GraphEntities, corpus: Corpus, source: str, target: str) -> None:
    await entities.merge(corpus.workspace, MergeRequest((source,), target), corpus.lease)


async def aliases(entities: GraphEntities, corpus: Corpus) -> dict[str, str]:
    return {found.alias: found.target for found in await entities.aliases(corpus.workspace, after=None, limit=99)}


async def test_a_later_document_that_says_the_old_name_speaks_of_the_target(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, "Ann Reed met Annie Reed in Porto.")
    await merge(entities, corpus, "Annie Reed", "Ann Reed")
    later = await ingest(index, corpus, "Annie Reed knows Ann Reed. Annie Reed moved to Braga.")
    nodes, edges = await graph(pool, corpus)
    assert set(nodes) == {"Ann Reed", "Porto", "Braga"}
    assert edges == {("Ann Reed", "Porto"), ("Ann Reed", "Braga")}
    assert (await entities.get(corpus.workspace, "annie  REED")).chunks[-1] == (later.version_id, 0)
    assert await mentions(pool, corpus) == {"Ann Reed", "Porto", "Braga"}
    assert "Annie Reed" in str(corpus.chat.asked)


async def test_answers_stay_raw_so_that_a_removed_alias_leaves_no_mark(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, "Ann Reed lives in Porto.")
    await entities.add_alias(corpus.workspace, "Annie Reed", "Ann Reed", corpus.lease)
    version = await ingest(index, corpus, "Annie Reed works in Braga.")
    assert "Annie Reed" not in (await graph(pool, corpus))[0]
    await entities.remove_alias(corpus.workspace, "ANNIE REED", corpus.lease)
    await index.remove(corpus.workspace, version.version_id, corpus.lease, keep_answers=True)
    await index.insert(corpus.workspace, version, corpus.lease)
    assert set((await graph(pool, corpus))[0]) == {"Ann Reed", "Porto", "Annie Reed", "Braga"}
    assert corpus.chat.count(Purpose.EXTRACT) == 2


async def test_a_rebuild_reads_under_the_alias(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    first = await ingest(index, corpus, "Ann Reed owns a boat.")
    await ingest(index, corpus, "Annie Reed works in Braga & O Porto.")
    await merge(entities, corpus, "Annie Reed", "Ann Reed")
    await ingest(index, corpus, "Ann Reed sings.")
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    nodes, edges = await graph(pool, corpus)
    assert nodes["Ann Reed"].split("<SEP>") == ["Annie Reed works in Braga & O Porto.", "Ann Reed sings."]
    assert ("Ann Reed", "Braga") in edges
    assert "boat" not in await everything(pool, corpus)


async def test_a_reindex_and_the_deletion_of_all_documents_leave_nothing_of_either_name(
    index: GraphWriter, entities: GraphEntities, search: GraphSearch, pool: EngineDatabase, corpus: Corpus
) -> None:
    first = await ingest(index, corpus, "Ann Reed lives in Porto.")
    second = await ingest(index, corpus, "Annie Reed works in Braga.")
    await merge(entities, corpus, "Annie Reed", "Ann Reed")
    again = await corpus.add("Annie Reed works in Braga.", document_id=second.document_id)
    await index.insert(corpus.workspace, again, corpus.lease, replaces=[second.version_id])
    await corpus.trust(again)
    assert set((await graph(pool, corpus))[0]) == {"Ann Reed", "Porto", "Braga"}
    for version in (first, again):
        await index.remove(corpus.workspace, version.version_id, corpus.lease)
    assert await graph(pool, corpus) == ({}, set())
    assert "Reed" not in await everything(pool, corpus)
    for name in ("Ann Reed", "Annie Reed"):
        found = await search.search(corpus.workspace, SearchRequest(name, "mix"))
        assert (found.entities, found.relations, found.passages) == ((), (), ())
    with inside(corpus.workspace.ref):
        left = await pool.fetch(
            "SELECT alias, source FROM entity_aliases WHERE workspace_id = $1", corpus.workspace.ref.workspace_id
        )
    assert left == []


async def test_chains_lead_to_their_end_and_a_circle_to_the_newest_merge(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    text = "Ann Reed met Bea Reed and Cleo Reed in Porto."
    await ingest(index, corpus, text)
    await merge(entities, corpus, "Ann Reed", "Bea Reed")
    await merge(entities, corpus, "Bea Reed", "Cleo Reed")
    await ingest(index, corpus, "Ann Reed sings.", "Bea Reed swims.")
    assert set((await graph(pool, corpus))[0]) == {"Cleo Reed", "Porto"}
    await merge(entities, corpus, "Cleo Reed", "Ann Reed")
    assert await aliases(entities, corpus) == {"Bea Reed": "Cleo Reed", "Cleo Reed": "Ann Reed"}
    await ingest(index, corpus, "Bea Reed climbs.", "Cleo Reed dives.", "Ann Reed rests.")
    assert set((await graph(pool, corpus))[0]) == {"Ann Reed", "Porto"}
    assert (await entities.get(corpus.workspace, "Bea Reed")).name == "Ann Reed"


async def test_names_that_differ_by_case_width_and_spaces_are_one_entity_from_the_first_insert(
    index: GraphWriter, pool: EngineDatabase, corpus: Corpus
) -> None:
    corpus.chat.answers["quartz"] = records("On quartz.", ["Acme Werke", "ＡＣＭＥ  WERKE", "Straße"])
    corpus.chat.answers["basalt"] = records("On basalt.", ["acme werke", "STRASSE", "Porto"])
    first = await ingest(index, corpus, "On quartz.", "On basalt.")
    nodes, edges = await graph(pool, corpus)
    assert set(nodes) == {"Acme Werke", "Straße", "Porto"}
    assert edges == {("Acme Werke", "Straße"), ("Porto", "Straße")}
    second = await ingest(index, corpus, "More basalt.")
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    assert set((await graph(pool, corpus))[0]) == {"Acme Werke", "Straße", "Porto"}
    await index.remove(corpus.workspace, second.version_id, corpus.lease)
    # The name was that of the entity; with it, it is free again.
    await ingest(index, corpus, "More basalt again.")
    assert set((await graph(pool, corpus))[0]) == {"acme werke", "STRASSE", "Porto"}


@pytest.mark.parametrize("form", ["text", "json", "broken"])
async def test_every_form_of_a_raw_answer_is_read_under_the_alias(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus, form: str
) -> None:
    said = 'He said "a < b" &amp; left.'
    lines = [
        f'entity<|#|>"Ann Reed"<|#|>Person<|#|>{said}',
        "entity<|#|>Porto<|#|>City<|#|>A city.",
        f"relationship<|#|>Ann Reed<|#|>Porto<|#|>home<|#|>{said}",
        "<|COMPLETE|>",
    ]
    as_json = {
        "entities": [
            {"name": "Ann Reed", "type": "Person", "description": said},
            {"name": "Porto", "type": "City", "description": "A city."},
        ],
        "relationships": [{"source": "Ann Reed", "target": "Porto", "keywords": "home", "description": said}],
    }
    answer = {
        "text": "\n".join(lines),
        "json": f"```json\n{json.dumps(as_json)}\n```",
        "broken": "\n".join(lines).replace("<|#|>Person<|#|>", "<|#|Person|#|>"),
    }[form]
    corpus.chat.answers["quartz"] = "\n".join(lines)
    first = await ingest(index, corpus, "Of quartz.")
    doomed = await ingest(index, corpus, "Ann Reed left Porto.")
    with inside(corpus.workspace.ref):
        await pool.fetch(
            "UPDATE lightrag_llm_cache SET return_value = $1 WHERE chunk_id LIKE $2", answer, f"{first.version_id}%"
        )
    before = (await graph(pool, corpus))[0]["Porto"]
    await merge(entities, corpus, "Ann Reed", "Bea Reed")
    await index.remove(corpus.workspace, doomed.version_id, corpus.lease)
    nodes, edges = await graph(pool, corpus)
    assert nodes == {"Bea Reed": 'He said "a < b" & left.', "Porto": "A city."}
    assert edges == {("Bea Reed", "Porto")}
    assert before.startswith("A city.")


async def test_an_alias_set_by_hand_is_listed_in_order_and_applies_before_its_target_is_there(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    for alias in ("Zed", "annie", "Ann"):
        await entities.add_alias(corpus.workspace, alias, "Ann Reed", corpus.lease)
    again = await entities.add_alias(corpus.workspace, "ANN", "ann reed", corpus.lease)
    assert (again.alias, again.source) == ("Ann", "manual")
    page = await entities.aliases(corpus.workspace, after="Ann", limit=1)
    assert [found.alias for found in page] == ["Zed"]
    await ingest(index, corpus, "Zed met Ann in Porto.")
    assert set((await graph(pool, corpus))[0]) == {"Ann Reed", "Porto"}


async def test_what_cannot_be_an_alias_is_refused(index: GraphWriter, entities: GraphEntities, corpus: Corpus) -> None:
    await ingest(index, corpus, "Ann Reed met Bea Reed in Porto.")
    await merge(entities, corpus, "Bea Reed", "Ann Reed")
    refused = [
        ("Porto", "Ann Reed", AliasTaken),
        ("porto", "Ann Reed", AliasTaken),
        ("Bea Reed", "Porto", AliasTaken),
        ("ann  reed", "Ann Reed", AliasTaken),
        ("Annie", "annie", InvalidAlias),
        ("a<SEP>b", "Ann Reed", InvalidAlias),
        ("Ann Reed", "Bea Reed", InvalidAlias),
    ]
    for alias, target, error in refused:
        with pytest.raises((error, InvalidAlias)):
            await entities.add_alias(corpus.workspace, alias, target, corpus.lease)
    with pytest.raises(AliasNotFound):
        await entities.remove_alias(corpus.workspace, "Porto", corpus.lease)
    with pytest.raises(InvalidMerge):
        await merge(entities, corpus, "Ann Reed", "ANN REED")
    assert await aliases(entities, corpus) == {"Bea Reed": "Ann Reed"}


async def test_a_question_that_says_the_alias_finds_the_entity(
    index: GraphWriter, entities: GraphEntities, search: GraphSearch, corpus: Corpus
) -> None:
    await ingest(index, corpus, "Kubernetes schedules containers. Zeppelin flies high.")
    await entities.add_alias(corpus.workspace, "K8s", "Kubernetes", corpus.lease)
    found = await search.search(corpus.workspace, SearchRequest("What does K8s do?", "local", graph_top_k=1))
    assert [entity.name for entity in found.entities] == ["Kubernetes"]
    assert found.details["keywords"]["low"] == ["Kubernetes"]


async def test_aliases_belong_to_their_workspace(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus, other_corpus: Corpus
) -> None:
    await entities.add_alias(corpus.workspace, "Ann", "Ann Reed", corpus.lease)
    await ingest(index, other_corpus, "Ann met Porto.")
    assert "Ann" in (await graph(pool, other_corpus))[0]
    assert await aliases(entities, other_corpus) == {}


def test_keys_are_equal_for_names_that_are_one_entity() -> None:
    assert entity_key("Ｋ８ｓ") == entity_key(" k8S ")
    assert entity_key("Müller  Straße") == entity_key("MU\u0308LLER STRASSE")
    assert entity_key("İstanbul") == entity_key("i̇stanbul")
    assert entity_key("a b") != entity_key("ab")
