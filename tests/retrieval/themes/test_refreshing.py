"""A map of themes is built, kept up to date by every document that comes or goes, and replaced as a whole."""

import asyncio
from uuid import uuid4

import pytest

from app.domain.themes.refreshing import ThemesTookTooLong
from app.jobs import RefreshThemes
from app.retrieval.themes import claim_store, store
from tests.factories import Tenancy
from tests.retrieval.corpora import Corpus, Stored
from tests.retrieval.themes.conftest import HARBOUR, OBSERVATORY, VINEYARD, Themes

WAITING = """
SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
 WHERE l.locktype = 'advisory' AND NOT l.granted"""
HARBOUR_ADDED = "Wei Lan showed visitors the Tideline Sensors and Pier Seven in the Port of Qingdao."


async def test_topics_become_themes_with_labels_in_their_language(themes: Themes) -> None:
    topics = await themes.fill()
    await themes.refresh()
    tops, labels = await themes.tops(), await themes.labels()
    of_topic = [{tops[passage] for document in topic for passage in document.passage_ids} for topic in topics]
    assert [len(found) for found in of_topic] == [1, 1, 1]
    words = [" ".join(labels[found.pop()][:3]) for found in of_topic]
    assert "Tideline Sensors" in words[0] or "Pier Seven" in words[0]
    assert "Château Belmont" in words[1] or "Odile Garnier" in words[1]
    assert "Ирина Соколова" in words[2] or "Северная Лира" in words[2]
    found = await themes.found()
    assert (found.passages, found.assigned, found.is_sampled, found.empty_reason) == (15, 15, False, None)


async def test_a_new_passage_joins_the_nearest_theme_and_leaves_with_its_document(themes: Themes) -> None:
    topics = await themes.fill()
    await themes.refresh()
    added = await themes.add(HARBOUR_ADDED)
    tops = await themes.tops()
    assert tops[added.passage_ids[0]] == tops[topics[0][0].passage_ids[0]]
    assert await themes.rows("SELECT count(*) FROM theme_passages WHERE is_placed") == [(1,)]
    async with themes.corpus.database.snapshot(themes.ref.tenant_id) as session:
        found = await store.find_map(session, themes.ref)
        assert found is not None
        assert (await store.load_moved(session, themes.ref, found.id)).share(found) == pytest.approx(1 / 15)
    await themes.corpus.remove(added)
    assert added.passage_ids[0] not in await themes.leaves()


async def test_a_workspace_without_themes_places_nothing(themes: Themes) -> None:
    await themes.add(HARBOUR_ADDED)
    assert await themes.leaves() == {}


async def test_words_of_a_removed_document_are_gone_from_labels_and_tables(themes: Themes) -> None:
    topics = await themes.fill()
    await themes.refresh()
    for document in topics[2]:
        await themes.corpus.remove(document)
    assert not [term for terms in (await themes.labels()).values() for term in terms if "Соколова" in term]
    assert await themes.rows("SELECT 1 FROM theme_concepts WHERE surface LIKE '%Соколова%'") == []


async def test_a_word_of_two_documents_is_gone_when_both_are_removed_at_once(themes: Themes) -> None:
    topics = await themes.fill()
    await themes.refresh()
    first, *rest, last = topics[0]
    for document in rest:
        await themes.corpus.remove(document)
    assert await themes.rows("SELECT 1 FROM theme_concepts WHERE surface LIKE '%Pier Seven%' LIMIT 1") == [(1,)]
    async with themes.corpus.database.tenant(themes.ref.tenant_id) as session:
        await themes.corpus.index.remove(session, themes.ref, first.version_id)
        other = asyncio.create_task(themes.corpus.remove(last))
        while not other.done() and await themes.rows(WAITING) == []:  # noqa: ASYNC110 - Postgres tells nobody
            await asyncio.sleep(0.01)
    await other
    assert await themes.rows("SELECT 1 FROM theme_concepts WHERE surface LIKE '%Pier Seven%'") == []


async def test_a_word_is_shown_only_while_a_trusted_passage_holds_it(themes: Themes) -> None:
    topics = await themes.fill()
    await themes.refresh()
    ids = [document.document_id for document in topics[2]]
    await themes.corpus.change("UPDATE documents SET deleting_at = now() WHERE id = ANY (:ids)", ids=ids)
    assert not [term for terms in (await themes.labels()).values() for term in terms if "Соколова" in term]


async def test_words_are_spelt_as_passages_have_them_that_may_be_read(
    themes: Themes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await themes.fill()
    load = store.load_surfaces

    async def of_others(*arguments: object) -> dict[int, str]:
        return dict.fromkeys(await load(*arguments), "Spelt by others")  # type: ignore[arg-type]

    monkeypatch.setattr(store, "load_surfaces", of_others)
    await themes.refresh()
    assert await themes.rows("SELECT 1 FROM theme_concepts WHERE surface = 'Spelt by others' LIMIT 1") == [(1,)]
    terms = {term for label in (await themes.labels()).values() for term in label}
    assert "Spelt by others" not in terms
    assert len(terms) > 3


async def test_untrusted_passages_and_other_workspaces_have_no_part(themes: Themes, other_themes: Themes) -> None:
    await other_themes.fill([OBSERVATORY, VINEYARD])
    await themes.fill([HARBOUR, VINEYARD])
    partial = await themes.corpus.add("", HARBOUR_ADDED, state="partial")
    await themes.refresh()
    await other_themes.refresh()
    leaves, other = await themes.leaves(), await other_themes.leaves()
    assert len(leaves) == len(other) == 10 or partial.passage_ids[0] in leaves
    assert leaves.keys().isdisjoint(other)
    assert (await themes.found()).used_passages == 10
    assert not [term for terms in (await themes.labels()).values() for term in terms if "Соколова" in term]


async def test_ids_last_while_a_theme_is_mostly_the_same(themes: Themes) -> None:
    await themes.fill()
    await themes.refresh()
    before = await themes.tops()
    first = (await themes.found()).id
    await themes.add(HARBOUR_ADDED)
    await themes.ask()
    await themes.refresh()
    after = await themes.tops()
    assert (await themes.found()).id != first
    assert {passage: after[passage] for passage in before} == before


async def test_nothing_is_built_again_before_enough_has_changed(themes: Themes) -> None:
    await themes.fill()
    await themes.refresh()
    first = (await themes.found()).id
    await themes.add(HARBOUR_ADDED)
    await themes.refresh()
    assert (await themes.found()).id == first
    for _ in range(3):
        await themes.add(HARBOUR_ADDED)
    await themes.refresh()
    assert (await themes.found()).id != first
    assert await themes.rows("SELECT count(*) FROM theme_maps") == [(1,)]


async def test_too_few_passages_give_a_map_that_says_so(themes: Themes) -> None:
    await themes.fill([HARBOUR[:3]])
    await themes.refresh()
    assert await themes.rows("SELECT 1 FROM theme_maps") == []
    await themes.ask()
    await themes.refresh()
    found = await themes.found()
    assert (found.levels, found.empty_reason, found.passages) == (0, "too_few_passages", 3)


async def test_passages_without_anything_in_common_give_a_map_that_says_so(themes: Themes) -> None:
    for number in range(7):
        await themes.add(f"Qx{number}vw.")
    await themes.refresh()
    assert (await themes.found()).empty_reason == "too_few_concepts"


async def test_a_large_workspace_is_sampled_and_says_so(themes: Themes) -> None:
    await themes.fill()
    themes.sampled(10)
    await themes.refresh()
    found = await themes.found()
    assert found.is_sampled
    assert found.passages == 15
    assert 1 <= found.used_passages < 15
    assert await themes.rows("SELECT count(*) FROM theme_passages WHERE is_placed") == [(0,)]


async def test_what_comes_and_goes_during_a_build_is_in_the_map(
    themes: Themes, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = await themes.fill()
    load = store.load_surfaces
    added: list[Stored] = []

    async def meanwhile(*arguments: object) -> dict[int, str]:
        await themes.corpus.remove(topics[0][0])
        for document in topics[2]:
            await themes.corpus.remove(document)
        added.append(await themes.add(HARBOUR_ADDED))
        return {}

    async def both(*arguments: object) -> dict[int, str]:
        surfaces = await load(*arguments)  # type: ignore[arg-type]
        await meanwhile()
        return surfaces

    monkeypatch.setattr(store, "load_surfaces", both)
    await themes.refresh()
    leaves = await themes.leaves()
    assert topics[0][0].passage_ids[0] not in leaves
    tops = await themes.tops()
    assert tops[added[0].passage_ids[0]] == tops[topics[0][1].passage_ids[0]]
    assert await themes.rows("SELECT 1 FROM theme_concepts WHERE surface LIKE '%Соколова%'") == []


async def test_one_build_at_a_time_and_a_killed_one_is_swept_away(themes: Themes) -> None:
    await themes.fill()
    async with themes.corpus.database.tenant(themes.ref.tenant_id) as session:
        assert await claim_store.claim(session, themes.ref, 60) is not None
    await themes.refresh()
    assert await themes.rows("SELECT state FROM theme_maps") == [("building",)]
    await themes.corpus.change("UPDATE theme_maps SET building_until = now() - interval '1 second'")
    await themes.refresh()
    assert await themes.rows("SELECT state FROM theme_maps") == [("ready",)]


async def test_a_builder_that_lost_its_claim_writes_nothing(themes: Themes, monkeypatch: pytest.MonkeyPatch) -> None:
    await themes.fill()
    load = store.load_surfaces

    async def taken_over(*arguments: object) -> dict[int, str]:
        await themes.corpus.change("DELETE FROM theme_maps")
        return await load(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "load_surfaces", taken_over)
    await themes.refresh()
    assert await themes.rows("SELECT 1 FROM theme_maps") == []
    assert await themes.rows("SELECT 1 FROM themes") == []


async def test_a_failed_or_cancelled_build_leaves_the_map_before_and_no_claim(
    themes: Themes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await themes.fill()
    await themes.refresh()
    first = (await themes.found()).id
    reached = asyncio.Event()

    async def stuck(*_: object) -> dict[int, str]:
        reached.set()
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(store, "load_surfaces", stuck)
    await themes.ask()
    running = asyncio.create_task(themes.refresh())
    await reached.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await themes.rows("SELECT id, state FROM theme_maps") == [(first, "ready")]


async def test_a_workspace_that_is_going_is_left_alone(themes: Themes, monkeypatch: pytest.MonkeyPatch) -> None:
    await themes.fill()
    load = store.load_surfaces

    async def deleting(*arguments: object) -> dict[int, str]:
        await themes.corpus.change(
            "UPDATE workspaces SET status = 'deleting' WHERE id = :id", id=themes.ref.workspace_id
        )
        return await load(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "load_surfaces", deleting)
    await themes.refresh()
    assert await themes.rows("SELECT 1 FROM theme_maps WHERE state = 'ready'") == []
    await themes.refreshing.run(RefreshThemes(themes.ref.tenant_id, uuid4()))


async def test_another_tenant_sees_no_row(themes: Themes, other_tenancy: Tenancy) -> None:
    await themes.fill()
    await themes.refresh()
    other = Themes(await Corpus.create(other_tenancy), themes.settings)
    for table in ("theme_maps", "themes", "theme_concepts", "theme_passages"):
        assert await other.rows(f"SELECT 1 FROM {table}") == []


async def test_a_build_that_failed_is_not_tried_again_before_something_changes(
    themes: Themes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await themes.fill()
    load = store.load_surfaces
    tried: list[int] = []

    async def failing(*_: object) -> dict[int, str]:
        tried.append(1)
        raise RuntimeError

    monkeypatch.setattr(store, "load_surfaces", failing)
    with pytest.raises(RuntimeError):
        await themes.refresh()
    await themes.refresh()
    assert len(tried) == 1
    assert await themes.rows("SELECT 1 FROM corpus_versions WHERE version > themes_version OR are_themes_asked") == []
    await themes.ask()
    with pytest.raises(RuntimeError):
        await themes.refresh()
    await themes.refresh()
    assert len(tried) == 2
    monkeypatch.setattr(store, "load_surfaces", load)
    await themes.moved()
    await themes.refresh()
    assert await themes.rows("SELECT state FROM theme_maps") == [("ready",)]


async def test_a_build_that_takes_too_long_is_ended(themes: Themes, monkeypatch: pytest.MonkeyPatch) -> None:
    await themes.fill()

    async def stuck(*_: object) -> dict[int, str]:
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(store, "load_surfaces", stuck)
    themes.changed(themes_build_seconds=0.01)
    with pytest.raises(ThemesTookTooLong):
        await themes.refresh()
    assert await themes.rows("SELECT 1 FROM theme_maps") == []


async def test_a_corpus_whose_builders_are_killed_is_given_up(themes: Themes) -> None:
    await themes.fill()
    for _ in range(3):
        async with themes.corpus.database.tenant(themes.ref.tenant_id) as session:
            assert await claim_store.claim(session, themes.ref, -1) is not None
    await themes.refresh()
    await themes.refresh()
    assert await themes.rows("SELECT 1 FROM theme_maps WHERE state = 'ready'") == []
    await themes.ask()
    await themes.refresh()
    assert await themes.rows("SELECT state FROM theme_maps") == [("ready",)]


async def test_a_wish_that_comes_during_a_build_lasts(themes: Themes, monkeypatch: pytest.MonkeyPatch) -> None:
    await themes.fill()
    await themes.ask()
    load = store.load_surfaces

    async def asked_again(*arguments: object) -> dict[int, str]:
        await themes.add(HARBOUR_ADDED)
        await themes.ask()
        return await load(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "load_surfaces", asked_again)
    await themes.refresh()
    assert await themes.rows("SELECT are_themes_asked FROM corpus_versions") == [(True,)]
    monkeypatch.setattr(store, "load_surfaces", load)
    await themes.refresh()
    assert (await themes.found()).passages == 16
    assert await themes.rows("SELECT are_themes_asked FROM corpus_versions") == [(False,)]


async def test_no_map_is_built_where_none_may_be(themes: Themes) -> None:
    await themes.fill()
    themes.changed(themes_max_passages=0)
    await themes.ask()
    await themes.refresh()
    assert await themes.rows("SELECT 1 FROM theme_maps") == []
