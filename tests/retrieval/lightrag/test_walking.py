"""Neighbours, paths, mentions, exports and searches by name: what is found, where it ends, and who is left out."""

import pytest

from app.retrieval.contract import EntityEvidence
from app.retrieval.entity_contract import ChangeRecord, EntityNotFound
from app.retrieval.entity_graph_contract import Decisions
from app.retrieval.lightrag.entities import GraphEntities
from app.retrieval.lightrag.index import GraphWriter
from tests.retrieval.lightrag.doubles import Corpus, VersionChunks, ignore, records


async def ingest(index: GraphWriter, corpus: Corpus, *chunks: str) -> VersionChunks:
    version = await corpus.add(*chunks)
    await index.extract(corpus.workspace, version, ignore)
    await index.insert(corpus.workspace, version, corpus.lease)
    await corpus.trust(version)
    return version


CHAIN = "Alpha met Beta. Beta met Gamma. Gamma met Delta. Delta met Epsilon."


async def test_neighbours_come_by_distance_and_within_the_limit(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus
) -> None:
    await ingest(index, corpus, CHAIN)
    for depth, names in ((1, ["Alpha", "Beta"]), (3, ["Alpha", "Beta", "Gamma", "Delta"])):
        found = await entities.neighbours(corpus.workspace, "alpha", depth=depth, limit=100)
        assert [entity.name for entity, _ in found.entities] == names
        assert [distance for _, distance in found.entities] == list(range(len(names)))
        assert (len(found.relations), found.is_cut) == (len(names) - 1, False)
    cut = await entities.neighbours(corpus.workspace, "Gamma", depth=3, limit=2)
    assert (len(cut.entities), cut.is_cut) == (3, True)
    with pytest.raises(EntityNotFound):
        await entities.neighbours(corpus.workspace, "Nobody", depth=1, limit=9)


async def test_paths_are_the_shortest_and_end_at_a_length(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus
) -> None:
    corpus.chat.answers["square"] = "\n".join(
        f"relation<|#|>{a}<|#|>{b}<|#|>side<|#|>{a} is beside {b}."
        for a, b in (("North", "East"), ("East", "South"), ("South", "West"), ("West", "North"), ("South", "Pole"))
    )
    await ingest(index, corpus, "the square.", "Lonely lives with Nobody.")

    async def paths(source: str, target: str, longest: int = 4, limit: int = 9) -> list[tuple[str, ...]]:
        return list((await entities.paths(corpus.workspace, source, target, longest=longest, limit=limit)).paths)

    assert await paths("North", "South") == [("North", "East", "South"), ("North", "West", "South")]
    assert await paths("North", "South", limit=1) == [("North", "East", "South")]
    assert await paths("Pole", "north") == [("Pole", "South", "East", "North"), ("Pole", "South", "West", "North")]
    assert await paths("Pole", "North", longest=2) == []
    assert await paths("North", "Lonely") == []
    assert await paths("North", "NORTH") == [("North",)]


async def test_a_search_for_paths_reads_so_many_relations_at_most(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = "\n".join(f"relation<|#|>Hub<|#|>Leaf{n}<|#|>has<|#|>Hub has {n}." for n in range(20))
    corpus.chat.answers["the hub"] = hub
    await ingest(index, corpus, "the hub.", "Leaf3 likes Pole.")
    whole = await entities.paths(corpus.workspace, "Leaf7", "Pole", longest=6, limit=9)
    assert (whole.paths, whole.is_cut) == ((("Leaf7", "Hub", "Leaf3", "Pole"),), False)
    monkeypatch.setattr("app.retrieval.lightrag.entities.walking.MAX_RELATIONS_READ", 4)
    cut = await entities.paths(corpus.workspace, "Leaf7", "Leaf9", longest=6, limit=9)
    assert cut.is_cut
    around = await entities.neighbours(corpus.workspace, "Hub", depth=1, limit=100)
    assert (len(around.relations), around.is_cut) == (4, True)


async def test_what_is_not_trusted_is_no_way_and_no_neighbour(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus
) -> None:
    await ingest(index, corpus, "Alpha met Beta.", "Gamma sings.")
    hidden = await ingest(index, corpus, "Beta met Gamma. Gamma met Secret.")
    await corpus.trust(hidden, "failed")
    found = await entities.neighbours(corpus.workspace, "Alpha", depth=3, limit=100)
    assert [entity.name for entity, _ in found.entities] == ["Alpha", "Beta"]
    assert (await entities.paths(corpus.workspace, "Alpha", "Gamma", longest=4, limit=9)).paths == ()
    exported = [item async for item in entities.export(corpus.workspace)]
    assert "Secret" not in str(exported)
    assert [item.name for item in exported if isinstance(item, EntityEvidence)] == ["Alpha", "Beta", "Gamma"]
    assert [m.name for m in await entities.mentions(corpus.workspace, "Gamma", after=0, limit=9)] == ["Gamma"]


async def test_an_export_holds_everything_page_by_page(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.retrieval.lightrag.rows_store.PAGE", 2)
    await ingest(index, corpus, CHAIN)
    await entities.create_entity(
        corpus.workspace, "tab\there", {"description": "d"}, corpus.lease, record=ChangeRecord()
    )
    exported = [item async for item in entities.export(corpus.workspace)]
    names = [item.name for item in exported if isinstance(item, EntityEvidence)]
    assert names == ["Alpha", "Beta", "Delta", "Epsilon", "Gamma", "tab\there"]
    assert len(exported) == 6 + 4


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("elen", "Elena Petrova"), ("petrova", "Elena Petrova"), ("Petrowa", "Elena Petrova"), ("elena petrva", "Elena Petrova"),
        ("chaikovski", "Чайковский"), ("ЧАЙК", "Чайковский"), ("大学", "北京大学"), ("النور", "شركة النور"), ("muller", "Müller & Söhne"),
        ("r.x", "classes\\r.xml"),
    ],
)  # fmt: skip
async def test_names_are_found_by_parts_errors_and_other_letters(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus, wanted: str, name: str
) -> None:
    names = ["Elena Petrova", "Чайковский", "北京大学", "شركة النور", "Müller & Söhne", "classes\\r.xml", "Jonas Weber"]
    corpus.chat.answers["names"] = records("names.", names)
    await ingest(index, corpus, "names.")
    found = await entities.search(corpus.workspace, wanted, limit=5)
    assert [each.name for each in found][:1] == [name]


async def test_duplicates_are_proposed_with_reasons_and_kept_apart(
    index: GraphWriter, entities: GraphEntities, corpus: Corpus
) -> None:
    corpus.chat.answers["one"] = records("one.", ["Elena Petrova", "Harbor Works", "Kubernetes", "Acme GmbH"])
    corpus.chat.answers["two"] = records("two.", ["Elena Petrowa", "Harbor Works", "K8s", "ACME"])
    await ingest(index, corpus, "one.", "two.")

    async def groups(*apart: frozenset[str]) -> dict[tuple[str, ...], tuple[str, ...]]:
        decisions = Decisions(apart=frozenset(apart))
        found = await entities.duplicates(corpus.workspace, min_score=0.75, decisions=decisions, limit=9)
        return {tuple(sorted(group.names)): group.pairs[0].reasons for group in found}

    proposed = await groups()
    assert set(proposed) == {("Elena Petrova", "Elena Petrowa"), ("K8s", "Kubernetes"), ("ACME", "Acme GmbH")}
    assert proposed["Elena Petrova", "Elena Petrowa"][:2] == ("typo", "shared_neighbours")
    assert proposed["K8s", "Kubernetes"][0] == "abbreviation"
    assert proposed["ACME", "Acme GmbH"][0] == "legal_suffix"
    assert ("K8s", "Kubernetes") not in await groups(frozenset(("K8s", "Kubernetes")))
    corpus.chat.answers["three"] = records("three.", ["Kubernets"])
    await ingest(index, corpus, "three.")
    assert ("K8s", "Kubernetes", "Kubernets") in await groups()
