"""Browsing and merging entities: hostile names, refusals that change nothing, merges that leave nothing behind."""

import pytest

from app.retrieval.contract import SearchRequest
from app.retrieval.entity_contract import EntityNotFound, InvalidMerge, MergeRequest
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.search import GraphSearch
from tests.retrieval.lightrag.conftest import ALL_STORES
from tests.retrieval.lightrag.doubles import Corpus, VersionChunks, ignore, records
from tests.retrieval.lightrag.stored_graph import graph_edges, graph_nodes

pytestmark = ALL_STORES

HOSTILE = [
    r"classes\resource\spring\x.xml",
    'the "Blue" Book',
    "O'Neill's Café",
    "back\\slash\\",
    "$$ price $$",
    "curly {braces} {0} %s %(x)s",
    "🚀 Rocket 🧑🏽‍🚀",
    "شركة النور",
    "'; DROP TABLE lightrag_graph_nodes; --",
    "名" * 300,
    "x" * 300,
]


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


async def snapshot(pool: EngineDatabase, corpus: Corpus) -> list[object]:
    nodes = await graph_nodes(pool, corpus.workspace.ref)
    edges = await graph_edges(pool, corpus.workspace.ref)
    return [*sorted(nodes.items()), *sorted(edges.items())]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
async def test_any_name_is_found_again_and_can_be_merged(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus, name: str
) -> None:
    corpus.chat.answers["hostile"] = records("a hostile text.", [name, "Plain"])
    await ingest(index, corpus, "a hostile text.")
    found = await entities.get(corpus.workspace, name)
    assert found.description == "a hostile text."
    listed = await entities.list(corpus.workspace, prefix=found.name[:3], after=None, limit=10)
    assert found.name in [entity.name for entity in listed]
    merged = await entities.merge(corpus.workspace, MergeRequest((name,), "Plain"), corpus.lease)
    assert merged.name == "Plain"
    assert merged.relations == ()
    assert (await entities.get(corpus.workspace, name)).name == "Plain"


async def test_lists_go_on_after_a_name_in_code_point_order(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus
) -> None:
    corpus.chat.answers["list"] = records("a list.", ["Zulu", "alpha", "Beta", "Älg", "beta two", "中"])
    await ingest(index, corpus, "a list.")
    names: list[str] = []
    while page := await entities.list(corpus.workspace, prefix=None, after=names[-1] if names else None, limit=2):
        names += [entity.name for entity in page]
    assert names == ["Beta", "Zulu", "alpha", "beta two", "Älg", "中"]
    found = await entities.list(corpus.workspace, prefix="BETA", after=None, limit=9)
    assert [entity.name for entity in found] == ["Beta", "beta two"]
    assert [entity.degree for entity in found] == [2, 2]


async def test_an_entity_shows_its_relations_and_chunks(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus
) -> None:
    version = await ingest(index, corpus, "Ada Marsh founded Orbit Works.", "Orbit Works builds cranes.")
    found = await entities.get(corpus.workspace, "Orbit Works")
    assert found.chunks == ((version.version_id, 0), (version.version_id, 1))
    (relation,) = found.relations
    assert {relation.source, relation.target} == {"Ada Marsh", "Orbit Works"}
    assert relation.document_ids == (version.document_id,)


async def test_entities_of_untrusted_versions_are_not_there(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus
) -> None:
    version = await ingest(index, corpus, "Ada Marsh founded Orbit Works.")
    await corpus.trust(version, "failed")
    assert await entities.list(corpus.workspace, prefix=None, after=None, limit=9) == []
    with pytest.raises(EntityNotFound):
        await entities.get(corpus.workspace, "Ada Marsh")


@pytest.mark.parametrize(
    ("sources", "target", "error"),
    [
        ((), "Bob Stone", InvalidMerge),
        (("Ann Reed", "Bob Stone"), "Bob Stone", InvalidMerge),
        (("Ann Reed", "Ann Reed"), "Bob Stone", InvalidMerge),
        (("Ann Reed", " Ann Reed "), "Bob Stone", InvalidMerge),
        (("Ann Reed",), "Ann Reed", InvalidMerge),
        (("Ann Reed",), " Ann Reed ", InvalidMerge),
        (("Ann Reed",), "ANN  REED", InvalidMerge),
        (("Nobody",), "Bob Stone", EntityNotFound),
        (("Ann Reed", "Nobody"), "Bob Stone", EntityNotFound),
        (("Ann Reed",), "", InvalidMerge),
        (("Ann Reed",), "a<SEP>b", InvalidMerge),
    ],
)
async def test_a_refused_merge_changes_nothing(
    index: GraphWriter,
    entities: GraphEntities,
    pool: EngineDatabase,
    corpus: Corpus,
    sources: tuple[str, ...],
    target: str,
    error: type[Exception],
) -> None:
    await ingest(index, corpus, "Ann Reed met Bob Stone in Porto.")
    before = await snapshot(pool, corpus)
    with pytest.raises(error):
        await entities.merge(corpus.workspace, MergeRequest(sources, target), corpus.lease)
    assert await snapshot(pool, corpus) == before


async def test_related_entities_merge_without_a_relation_to_themselves(
    index: GraphWriter, entities: GraphEntities, search: GraphSearch, pool: EngineDatabase, corpus: Corpus
) -> None:
    await ingest(index, corpus, "Ann Reed met Annie Reed in Porto.")
    merged = await entities.merge(corpus.workspace, MergeRequest(("Annie Reed",), "Ann Reed"), corpus.lease)
    assert [(found.source, found.target) for found in merged.relations] == [("Ann Reed", "Porto")]
    assert all(source != target for source, target in await graph_edges(pool, corpus.workspace.ref))
    result = await search.search(corpus.workspace, SearchRequest("Annie Reed in Porto", "local"))
    assert "Ann Reed" in {found.name for found in result.entities}


async def test_a_merge_may_make_a_new_name(index: GraphWriter, entities: GraphEntities, corpus: Corpus) -> None:
    await ingest(index, corpus, "Ann Reed met Annie Reed in Porto.")
    request = MergeRequest(("Ann Reed", "Annie Reed"), "Anna Reed")
    merged = await entities.merge(corpus.workspace, request, corpus.lease)
    assert merged.name == "Anna Reed"
    assert [found.name for found in await entities.list(corpus.workspace, prefix=None, after=None, limit=9)] == [
        "Anna Reed",
        "Porto",
    ]


async def test_a_merged_entity_goes_with_its_last_document(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    first = await ingest(index, corpus, "Ann Reed lives in Porto.")
    second = await ingest(index, corpus, "Annie Reed works in Braga.")
    await entities.merge(corpus.workspace, MergeRequest(("Annie Reed",), "Ann Reed"), corpus.lease)
    await index.remove(corpus.workspace, second.version_id, corpus.lease)
    found = await entities.get(corpus.workspace, "Ann Reed")
    assert found.description == "Ann Reed lives in Porto."
    assert found.chunks == ((first.version_id, 0),)
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    assert await snapshot(pool, corpus) == []


async def test_an_alias_that_stood_alone_keeps_nothing_of_a_removed_document(
    index: GraphWriter, entities: GraphEntities, pool: EngineDatabase, corpus: Corpus
) -> None:
    corpus.chat.answers["quartz"] = records("Ann Reed knows quartz.", ["Ann Reed"])
    corpus.chat.answers["basalt"] = records("Annie Reed knows basalt.", ["Annie Reed"])
    first = await ingest(index, corpus, "Ann Reed knows quartz.")
    await ingest(index, corpus, "Annie Reed knows basalt.")
    await entities.merge(corpus.workspace, MergeRequest(("Annie Reed",), "Ann Reed"), corpus.lease)
    await index.remove(corpus.workspace, first.version_id, corpus.lease)
    found = await entities.get(corpus.workspace, "Ann Reed")
    assert "quartz" not in found.description
    if index.is_atomic(corpus.workspace.ref):
        # LightRAG's own storages know no aliases.
        assert found.description == "Annie Reed knows basalt."
    assert "quartz" not in str(await snapshot(pool, corpus))
