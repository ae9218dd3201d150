"""The mode `themes` and the routes of themes, over a map whose contents are known."""

import json
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import delete, update

from app.db.base import WorkspaceId
from app.db.models import ThemeMap, ThemePassage
from app.domain.tenants.records import Role
from tests.api.conftest import Connect, Index
from tests.api.documents import set_state, upload_text
from tests.api.theme_maps import add_map
from tests.factories import Tenancy

SEALS = [
    "Kestrel Polymers makes the seals of the Tideline Sensor in Porto. The Tideline Sensor is sold to harbours.",
    "The Tideline Sensor was recalled, for seals by Kestrel Polymers had cracks. Brightseal had changed the compound.",
]
ICE = [
    "The Icebreaker Aurora keeps the Gulf of Bothnia open in winter. Captain Ada Moreau commands the Icebreaker Aurora.",
    "Ice in the Gulf of Bothnia was thicker than the Icebreaker Aurora could break. Captain Ada Moreau asked for help.",
]
MUSIC = ["The Lindau Quartet played Schubert in Vienna. The Lindau Quartet will play Schubert in Graz next year."]
QUESTION = "What is said about the seals of the Tideline Sensor?"


@pytest.fixture
async def workspace_id(tenancy: Tenancy) -> WorkspaceId:
    return await tenancy.add_workspace(settings={"metadata_fields": {"year": "number"}})


@pytest.fixture
async def documents(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, index: Index
) -> list[list[Any]]:
    """Two about seals, two about ice, one about music."""
    found = []
    for subject, texts in enumerate((SEALS, ICE, MUSIC)):
        found.append(
            [
                await upload_text(client, workspace_id, text, title=f"Note {subject}{n}", metadata={"year": 2020 + n})
                for n, text in enumerate(texts)
            ]
        )
    await index(tenancy, *(document for group in found for document in group))
    return found


@pytest.fixture
async def themes(tenancy: Tenancy, workspace_id: WorkspaceId, documents: list[list[Any]]) -> list[UUID]:
    """Water (seals and ice together), seals, ice, music."""
    return await add_map(tenancy, workspace_id, documents)


async def ask(client: httpx.AsyncClient, workspace_id: WorkspaceId, query: str = "", **body: Any) -> Any:
    url = f"/v1/workspaces/{workspace_id}/query"
    response = await client.post(url, json={"query": query, "mode": "themes", **body})
    assert response.status_code == 200, response.text
    return response.json()


def ids(answer: Any) -> list[str]:
    return [item["id"] for item in answer["themes"]["items"]]


async def test_a_question_brings_the_themes_that_matter_with_cited_passages(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[list[Any]], themes: list[UUID]
) -> None:
    answer = await ask(client, workspace_id, QUESTION)
    assert (answer["mode"], answer["themes"]["level"], answer["usage"]["model_calls"]) == ("themes", 1, 0)
    first = answer["themes"]["items"][0]
    assert (first["id"], first["passages"], first["documents"]) == (str(themes[1]), 2, 2)
    assert "Tideline Sensor" in first["label"]
    assert {concept["label"] for concept in first["concepts"]} >= {"Tideline Sensor", "Kestrel Polymers"}
    assert first["concepts"][0]["passages"] == 2
    assert [concept["label"] for concept in first["concepts"] if concept["in_question"]] == ["Tideline Sensor", "seals"]
    legs = {source["leg"]: source["rank"] for source in first["rank"]["sources"]}
    assert legs == {"coverage": 1, "vectors": 1, "tf_idf": 1}
    assert first["rank"]["relevance"] == 1.0
    assert first["rank"]["score"] == pytest.approx(0.6 * first["rank"]["coverage"] + 0.4 * 0.8)
    assert set(first["passage_ids"]) == {
        p["passage_id"] for p in answer["evidence"]["passages"] if "Tideline" in p["text"]
    }
    scores = [passage["score"] for passage in answer["evidence"]["passages"]]
    assert scores == sorted(scores, reverse=True)
    assert all(passage["sources"][-1]["leg"] == "themes" for passage in answer["evidence"]["passages"])
    assert answer["evidence"]["entities"] == answer["evidence"]["relations"] == []
    assert answer["context"].startswith(f"## Theme 1: {first['label']} (2 passages in 2 documents)\nConcepts: ")
    assert "\n[1] Note 0" in answer["context"]
    cited = answer["citations"][0]
    assert (await client.get(cited["link"])).json()["passage"]["text"] in SEALS
    again = await ask(client, workspace_id, QUESTION)
    assert again["context"] == answer["context"]


async def test_without_a_question_it_tells_what_the_corpus_is_about(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, themes: list[UUID]
) -> None:
    answer = await ask(client, workspace_id)
    assert answer["themes"]["level"] == 1  # no level has five
    assert ids(answer) == [str(theme) for theme in themes[1:]]
    assert answer["usage"]["embedding_calls"] == 0
    assert answer["themes"]["items"][0]["rank"] == {
        "score": 0.8, "relevance": None, "coverage": None,
        "sources": [{"leg": "importance", "rank": 1, "score": 0.8}],
    }  # fmt: skip
    assert len(answer["citations"]) == 5
    coarse = await ask(client, workspace_id, top_k=2)
    assert (coarse["themes"]["level"], ids(coarse)) == (0, [str(themes[0]), str(themes[3])])
    assert coarse["themes"]["items"][0]["passages"] == 4
    assert (await client.post(f"/v1/workspaces/{workspace_id}/query", json={"mode": "themes"})).status_code == 200


async def test_levels_and_budgets_are_kept(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, themes: list[UUID]
) -> None:
    answer = await ask(client, workspace_id, QUESTION, level=0)
    assert (answer["themes"]["level"], ids(answer)[0]) == (0, str(themes[0]))
    assert [level["themes"] for level in answer["themes"]["map"]["levels"]] == [2, 3]
    assert len((await ask(client, workspace_id, level=1, max_context_chunks=2))["evidence"]["passages"]) == 2
    one = await ask(client, workspace_id, QUESTION, top_k=1)
    assert ids(one) == [str(themes[1])]
    assert ids(await ask(client, workspace_id, QUESTION, min_relevance=1)) == [str(themes[1])]
    ample, small = await ask(client, workspace_id), await ask(client, workspace_id, max_total_tokens=100)
    assert small["context_tokens"] <= 100 < ample["context_tokens"]
    assert small["evidence"] == ample["evidence"]
    assert any(note.startswith("Left out of the context for its token budgets: ") for note in small["notes"])
    texts = [passage["text"] for passage in small["evidence"]["passages"]]
    blocks = [block.split("\n", 1)[1] for block in small["context"].split("\n\n") if block.startswith("[")]
    assert all(block in texts for block in blocks)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"mode": "themes", "level": 2}, "theme_level_unknown"),
    ({"mode": "themes", "level": -1}, "validation_error"),
    ({"mode": "themes", "level": "deep"}, "validation_error"),
    ({"mode": "themes", "min_relevance": 1.1}, "validation_error"),
    ({"mode": "lazy", "query": QUESTION, "level": 0}, "theme_options_not_used"),
    ({"mode": "baseline", "query": QUESTION, "level": "auto"}, "theme_options_not_used"),
    ({"mode": "lazy", "query": QUESTION, "min_relevance": 0.1}, "theme_options_not_used"),
    ({"mode": "themes", "seed_k": 3}, "budgets_not_used"),
    ({"mode": "themes", "query": QUESTION, "rerank": True}, "rerank_not_used"),
    ({"mode": "themes", "query": QUESTION, "keywords": "llm"}, "keywords_not_used"),
    ({"mode": "themes", "expand": "cooccurrence"}, "query_required"),
    ({"mode": "lazy"}, "query_required"),
    ({"mode": "auto", "query": " \n"}, "query_required"),
    ({}, "query_required"),
]


async def test_what_means_nothing_is_refused(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, themes: list[UUID]
) -> None:
    for body, code in REFUSED:
        response = await client.post(f"/v1/workspaces/{workspace_id}/query", json=body)
        assert (response.status_code, response.json()["code"]) == (422, code), (body, response.text)
        if code == "theme_level_unknown":
            assert response.json()["levels"] == 2


async def test_without_a_map_the_answer_is_empty_and_says_why(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId
) -> None:
    here = f"/v1/workspaces/{workspace_id}/themes"
    answer = await ask(client, workspace_id, QUESTION)
    assert (answer["themes"], answer["context"]) == ({"level": None, "map": None, "items": []}, "")
    [notice] = answer["notices"]
    assert (notice["code"], notice["facts"]) == ("themes_not_built", {"state": "none"})
    assert notice["detail"] in answer["notes"]
    page = (await client.get(here)).json()
    assert (page["items"], page["map"], page["notices"]) == ([], None, [notice])
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        made = ThemeMap(id=uuid4(), tenant_id=tenancy.tenant_id, workspace_id=workspace_id, state="building")
        session.add(made)
    assert (await ask(client, workspace_id))["notices"][0]["facts"] == {"state": "building"}
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        await session.execute(update(ThemeMap).values(state="ready", empty_reason="too_few_passages"))
    notice = (await ask(client, workspace_id))["notices"][0]
    assert (notice["code"], notice["facts"]) == ("themes_empty", {"reason": "too_few_passages", "passages": 0})
    assert (await client.get(f"{here}/{uuid4()}")).json()["code"] == "theme_not_found"


async def test_only_what_may_be_believed_now_is_counted_and_told(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, documents: list[list[Any]],
    themes: list[UUID],
) -> None:  # fmt: skip
    here = f"/v1/workspaces/{workspace_id}/themes"
    only_second = ("Brightseal", "recalled", "compound")
    before = json.dumps(await ask(client, workspace_id))
    assert all(word in before for word in only_second)
    await set_state(tenancy, documents[0][1], "lazy", cleanliness="purging")
    for answer in (
        await ask(client, workspace_id),
        await ask(client, workspace_id, QUESTION),
        (await client.get(here, params={"level": 1})).json(),
        (await client.get(f"{here}/{themes[1]}")).json(),
        (await client.get(f"{here}/{themes[0]}")).json(),
    ):
        assert [word for word in only_second if word in json.dumps(answer)] == []
    seals = (await client.get(f"{here}/{themes[1]}")).json()["theme"]
    assert (seals["passages"], seals["documents"]) == (1, 1)
    assert all(concept["passages"] == 1 for concept in seals["concepts"])
    await client.delete(documents[0][0]["links"]["self"])
    assert str(themes[1]) not in ids(await ask(client, workspace_id))
    assert (await client.get(f"{here}/{themes[1]}")).status_code == 404
    assert "Kestrel" not in json.dumps(await ask(client, workspace_id, QUESTION))


async def test_a_filter_narrows_counts_labels_and_passages(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[list[Any]], themes: list[UUID]
) -> None:
    for query in ("", QUESTION):
        answer = await ask(client, workspace_id, query, filter={"metadata": {"year": 2020}})
        assert {item["passages"] for item in answer["themes"]["items"]} == {1}
        said = json.dumps(answer)
        assert [word for word in ("Brightseal", "recalled", "thicker", "asked for help") if word in said] == []
        assert str(themes[1]) in ids(answer)
        one = await ask(client, workspace_id, query, filter={"document_ids": [documents[2][0]["id"]]})
        assert ids(one) == [str(themes[3])]
        assert one["themes"]["map"]["passages"] == 1
    none = await ask(client, workspace_id, filter={"metadata": {"year": 1999}})
    assert (none["themes"]["items"], none["notices"]) == ([], [])
    assert "No document of the workspace meets the filter." in none["notes"]


async def test_a_question_in_another_language_is_not_led_astray_by_words(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, themes: list[UUID]
) -> None:
    """`in` is a word of both languages, and the digits of none."""
    answer = await ask(client, workspace_id, "Welches Quartett spielt in Wien Musik von Franz Liszt?")
    first = answer["themes"]["items"][0]
    assert first["id"] == str(themes[3]), [item["label"] for item in answer["themes"]["items"]]
    assert answer["details"]["words_weight"] < 0.5


async def test_the_list_has_pages_and_details_have_children(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[list[Any]], themes: list[UUID]
) -> None:
    here = f"/v1/workspaces/{workspace_id}/themes"
    found, cursor, ranks = [], None, []
    while True:
        params: dict[str, Any] = {"level": 1, "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await client.get(here, params=params)).json()
        found += [item["id"] for item in page["items"]]
        ranks += [item["rank"]["sources"][0]["rank"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert (found, ranks) == ([str(theme) for theme in themes[1:]], [1, 2, 3])
    assert [level["level"] for level in page["map"]["levels"]] == [0, 1]
    detail = (await client.get(page["items"][0]["link"])).json()
    assert (detail["children"], [d["document_id"] for d in detail["documents"]]) == ([], [documents[2][0]["id"]])
    above = (await client.get(f"{here}/{themes[0]}")).json()
    assert [child["id"] for child in above["children"]] == [str(themes[1]), str(themes[2])]
    assert len({passage["document_id"] for passage in above["passages"]}) == 4
    assert (await client.get(above["passages"][0]["link"])).status_code == 200
    assert (await client.get(here, params={"level": 2})).json()["code"] == "theme_level_unknown"
    for cursor in ("x", "WyJ4IiwgInkiXQ"):
        assert (await client.get(here, params={"cursor": cursor})).json()["code"] == "invalid_cursor"


async def test_documents_in_no_theme_are_counted_and_listed(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, documents: list[list[Any]]
) -> None:
    here = f"/v1/workspaces/{workspace_id}/themes/outside"
    assert [notice["code"] for notice in (await client.get(here)).json()["notices"]] == ["themes_not_built"]
    await add_map(tenancy, workspace_id, [documents[0], documents[1][:1]])
    outside = sorted([documents[1][1]["id"], documents[2][0]["id"]])
    found, cursor = [], None
    while True:
        page = (await client.get(here, params={"limit": 1} | ({"cursor": cursor} if cursor else {}))).json()
        found += [item["document_id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert (found, page["notices"]) == (outside, [])
    for answer in (await ask(client, workspace_id), await ask(client, workspace_id, QUESTION)):
        of = answer["themes"]["map"]
        assert (of["documents"], of["documents_outside"]) == (5, 2)
        [notice] = answer["notices"]
        assert (notice["code"], notice["facts"]) == ("documents_outside", {"documents_outside": 2, "documents": 5})
        assert notice["detail"] in answer["notes"]
    narrowed = await ask(client, workspace_id, filter={"metadata": {"year": 2020}})
    assert narrowed["themes"]["map"]["documents_outside"] == 1
    await set_state(tenancy, documents[1][1], "lazy", cleanliness="purging")
    await client.delete(documents[2][0]["links"]["self"])
    assert (await client.get(here)).json()["items"] == []
    listed = (await client.get(here.removesuffix("/outside"))).json()
    assert (listed["map"]["documents"], listed["map"]["documents_outside"], listed["notices"]) == (3, 0, [])
    assert (await client.get(here, params={"cursor": "WyJ4Il0"})).json()["code"] == "invalid_cursor"


async def test_strangers_and_readers(
    connect: Connect, stranger: httpx.AsyncClient, other_tenancy: Tenancy, tenancy: Tenancy, workspace_id: WorkspaceId,
    themes: list[UUID], index: Index,
) -> None:  # fmt: skip
    """Case C1 for themes: another workspace has a map of its own."""
    here = f"/v1/workspaces/{workspace_id}/themes"
    reader = await connect(tenancy, Role.READER)
    assert (await reader.get(here)).status_code == 200
    assert (await reader.get(f"{here}/{themes[0]}")).status_code == 200
    theirs = await other_tenancy.add_workspace()
    made = [await upload_text(stranger, theirs, f"{text} Zarquon watched.") for text in (*ICE, *MUSIC)]
    await index(other_tenancy, *made)
    foreign = await add_map(other_tenancy, theirs, [[document] for document in made])
    assert (await stranger.get(here)).status_code == 404
    assert (await stranger.get(f"{here}/{themes[0]}")).status_code == 404
    assert (await stranger.get(f"/v1/workspaces/{theirs}/themes/{themes[0]}")).json()["code"] == "theme_not_found"
    assert (await reader.get(f"{here}/{foreign[0]}")).json()["code"] == "theme_not_found"
    assert "Zarquon" in json.dumps(await ask(stranger, theirs))
    assert "Kestrel" not in json.dumps(await ask(stranger, theirs, QUESTION))
    assert "Zarquon" not in json.dumps(await ask(reader, workspace_id, "Zarquon"))


async def test_auto_picks_themes_where_there_is_a_map(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, themes: list[UUID]
) -> None:
    survey = "What are the main themes of the documents?"
    answer = await ask(client, workspace_id, survey, mode="auto")
    assert (answer["mode"], answer["routing"]["features"]["themes_ready"]) == ("themes", True)
    assert answer["themes"]["items"]
    assert (await ask(client, workspace_id, QUESTION, mode="auto", level=0))["mode"] == "themes"
    assert (await ask(client, workspace_id, survey, mode="auto", rerank=False))["mode"] == "themes"
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        await session.execute(delete(ThemeMap))
    answer = await ask(client, workspace_id, survey, mode="auto")
    assert answer["mode"] == "lazy-wide"
    assert "The workspace has no themes now." in answer["routing"]["reason"]


async def test_what_came_later_and_what_was_sampled_is_told(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, themes: list[UUID]
) -> None:
    async with tenancy.owner_database.tenant(tenancy.tenant_id) as session:
        await session.execute(update(ThemePassage).where(ThemePassage.theme_id == themes[3]).values(is_placed=True))
        mine = update(ThemeMap).where(ThemeMap.workspace_id == workspace_id)
        await session.execute(mine.values(is_sampled=True, used_passages=4, passages=5))
    answer = await ask(client, workspace_id)
    assert (answer["themes"]["map"]["placed_share"], answer["themes"]["map"]["sampled_share"]) == (0.2, 0.8)
    assert answer["themes"]["map"]["is_stale"]
    assert [notice["code"] for notice in answer["notices"]] == ["themes_stale", "themes_sampled"]
    assert [item["placed"] for item in answer["themes"]["items"]] == [0, 0, 1]


async def test_other_doors_ask_themes_too(
    client: httpx.AsyncClient, workspace_id: WorkspaceId, documents: list[list[Any]], themes: list[UUID]
) -> None:
    here = f"/v1/workspaces/{workspace_id}"
    compared = (
        await client.post(f"{here}/queries/compare", json={"query": QUESTION, "modes": ["themes", "baseline"]})
    ).json()["results"]
    assert (
        compared[0]["answer"]["themes"][0] == (await ask(client, workspace_id, QUESTION))["themes"]["items"][0]["label"]
    )
    assert compared[1]["answer"]["themes"] == []
    body = {"query": QUESTION, "mode": "themes", "document_id": documents[0][0]["id"]}
    told = (await client.post(f"{here}/explain", json=body)).json()
    assert [passage["cut"] for passage in told["passages"]] == [None]
    assert {leg["leg"]: leg["best_rank"] for leg in told["legs"]}["themes"] == 1
    below = (await client.post(f"{here}/explain", json=body | {"top_k": 1, "max_context_chunks": 1})).json()
    assert [p["cut"] for p in below["passages"]] in ([None], ["below_k"])
    logged = (await client.get(f"{here}/queries")).json()["items"]
    assert {"themes", "baseline"} <= {entry["mode"] for entry in logged}
    limited = await ask(client, workspace_id, QUESTION, timeout_ms=60_000)
    assert (limited["missing_legs"], limited["context"]) == ([], (await ask(client, workspace_id, QUESTION))["context"])


async def test_concepts_are_listed_by_how_central_they_are(
    client: httpx.AsyncClient, tenancy: Tenancy, workspace_id: WorkspaceId, documents: list[list[Any]],
    themes: list[UUID], connect: Connect, stranger: httpx.AsyncClient,
) -> None:  # fmt: skip
    here = f"/v1/workspaces/{workspace_id}/concepts"
    reader = await connect(tenancy, Role.READER)
    found, cursor = [], None
    while True:
        page = (await reader.get(here, params={"limit": 7} | ({"cursor": cursor} if cursor else {}))).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len({item["id"] for item in found}) == len(found) > 14
    ranks = [item["pagerank"] for item in found]
    assert ranks == sorted(ranks, reverse=True)
    named = {item["label"]: item for item in found}
    assert (named["Tideline Sensor"]["passages"], named["Tideline Sensor"]["theme_id"]) == (2, str(themes[1]))
    for search, expected in (
        ("tideline", "Tideline Sensor"),
        ("Who is Captain Ada Moreau?", "Captain Ada Moreau"),
        ("100%", None),
    ):
        labels = [item["label"] for item in (await client.get(here, params={"search": search})).json()["items"]]
        assert (expected in labels) if expected else labels == []
    await client.delete(documents[0][0]["links"]["self"])
    left = {item["label"]: item for item in (await client.get(here, params={"limit": 200})).json()["items"]}
    assert left["Tideline Sensor"]["passages"] == 1
    assert "Porto" not in left
    assert (await stranger.get(here)).status_code == 404
    assert (await client.get(here, params={"cursor": "WyJ4IiwgInkiXQ"})).json()["code"] == "invalid_cursor"
    empty = await tenancy.add_workspace()
    answer = (await client.get(f"/v1/workspaces/{empty}/concepts")).json()
    assert (answer["items"], answer["notices"][0]["code"]) == ([], "themes_not_built")
