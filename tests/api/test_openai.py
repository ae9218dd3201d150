"""OpenAI's interface, asked by the official SDK over real connections, with the stub and the offline model behind it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from sqlalchemy import select

from app.bootstrap import Container
from app.db.base import WorkspaceId
from app.db.models import UsageEvent, Workspace
from app.db.session import Database
from app.domain.answering.extractive import OFFLINE_NOTICE
from app.domain.tenants.records import Role
from app.retrieval.contract import MODES
from app.settings import Settings
from tests.api.conftest import Connect, Index
from tests.api.documents import until, upload_text
from tests.api.serving import serving
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer

TEXT = "Kestrel Polymers makes the seals of the Tideline Sensor in Porto. Jonas Weber replaced the sensor in Varna."
QUESTION = "Who makes the seals of the Tideline Sensor?"
ASKED: Any = [{"role": "user", "content": QUESTION}]


@pytest.fixture(scope="module")
async def server_url(container: Container) -> AsyncIterator[str]:
    async with serving(container) as url:
        yield f"{url}/v1/openai"


@pytest.fixture
async def key(connect: Connect, tenancy: Tenancy) -> str:
    reader = await connect(tenancy, Role.READER)
    return reader.headers["Authorization"].removeprefix("Bearer ")


@pytest.fixture
async def sdk(server_url: str, key: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=server_url, api_key=key, max_retries=0) as client:
        yield client


async def named(tenancy: Tenancy, workspace_id: WorkspaceId, name: str) -> None:
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        (await session.scalars(select(Workspace).where(Workspace.id == workspace_id))).one().name = name


@pytest.fixture
async def written(
    client: httpx.AsyncClient, tenancy: Tenancy, stub_llm: StubServer, settings: Settings, owner_database: Database,
    index: Index,
) -> WorkspaceId:  # fmt: skip
    """A workspace called Acme Handbook whose chat model is the stub."""
    chat = await register_stub(stub_llm, owner_database, settings)
    made = await client.post("/v1/workspaces", json={"name": "Acme Handbook", "chat_model": chat})
    workspace_id = WorkspaceId(made.json()["id"])
    await index(tenancy, await upload_text(client, workspace_id, TEXT, title="Supply"))
    return workspace_id


@pytest.fixture
async def quoted(client: httpx.AsyncClient, tenancy: Tenancy, index: Index) -> WorkspaceId:
    """A workspace called Offline whose chat model is the offline one, with the graph."""
    made = await client.post("/v1/workspaces", json={"name": "Offline", "engines": ["lazy", "graph"]})
    workspace_id = WorkspaceId(made.json()["id"])
    await index(tenancy, await upload_text(client, workspace_id, TEXT, title="Supply"))
    return workspace_id


async def test_models_are_workspaces_and_modes(
    sdk: openai.AsyncOpenAI, written: WorkspaceId, connect: Connect, tenancy: Tenancy, server_url: str
) -> None:
    other = await tenancy.add_workspace(engines=("lazy", "graph"))
    await named(tenancy, other, "Déjà vu")
    ids = [model.id async for model in sdk.models.list()]
    assert "acme-handbook:lazy-wide" in ids
    assert "acme-handbook:mix" not in ids
    assert {f"déjà-vu:{mode}" for mode in MODES} <= set(ids)
    for name in ("acme-handbook:lazy-wide", f"{written}:lazy-wide", "déjà-vu:mix"):
        model = await sdk.models.retrieve(name)
        assert (model.object, model.owned_by) == ("model", "trellis")
    bound = await connect(tenancy, Role.READER, workspace_id=written)
    listed = (await bound.get("/v1/openai/models")).json()["data"]
    assert {model["workspace_id"] for model in listed} == {str(written)}
    refused = await bound.get("/v1/openai/models/déjà-vu:mix")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")


async def test_the_chat_model_gets_the_context_and_what_was_said_before(
    sdk: openai.AsyncOpenAI, written: WorkspaceId, stub_llm: StubServer
) -> None:
    stub_llm.set_faults({"kind": "answer", "body": "Kestrel Polymers [1]."})
    answer = await sdk.chat.completions.create(
        model="acme-handbook:lazy-wide",
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi"},
            {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        ],
        temperature=0.3, top_p=0.9, max_completion_tokens=50, stop="END", seed=7, presence_penalty=0.5, user="u1",
        frequency_penalty=0.25, n=1, response_format={"type": "text"}, extra_body={"trellis": {"footer": True}},
    )  # fmt: skip
    assert answer.choices[0].message.content == "Kestrel Polymers [1].\n\nSources:\n[1] Supply"
    assert answer.choices[0].finish_reason == "stop"
    sent = stub_llm.stats()["last_answer"]
    assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "user"]
    assert "Be brief." in sent["messages"][0]["content"]
    assert f"[1] Supply\n{TEXT}" in sent["messages"][0]["content"]
    passed = {name: sent[name] for name in sent.keys() - {"model", "messages"}}
    assert passed == {
        "temperature": 0.3, "top_p": 0.9, "max_tokens": 50, "stop": ["END"], "seed": 7, "presence_penalty": 0.5,
        "frequency_penalty": 0.25,
    }  # fmt: skip
    assert answer.usage is not None
    tokens = sum(len(message["content"]) // 4 for message in sent["messages"])
    assert abs(answer.usage.prompt_tokens - tokens) < 10
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


async def test_an_answer_says_where_it_comes_from(
    sdk: openai.AsyncOpenAI, written: WorkspaceId, client: httpx.AsyncClient, tenancy: Tenancy, stub_llm: StubServer
) -> None:
    told = [
        (await sdk.chat.completions.create(model="acme-handbook:lazy-wide", messages=ASKED)).to_dict() for _ in "ab"
    ]
    citation = told[0]["citations"][0]  # type: ignore[index]
    assert (await client.get(citation["link"])).json()["passage"]["text"] == TEXT
    first, second = (answer["trellis"] for answer in told)
    assert [first["cache"]["hit"], second["cache"]["hit"]] == [False, True]  # type: ignore[index]
    assert first["cache"]["namespace"] == f"w_{written}".replace("-", "")  # type: ignore[index]
    assert {"mode": "lazy-wide", "experimental": True, "withheld": 0, "is_extractive": False}.items() <= first.items()  # type: ignore[attr-defined]
    assert first["index"]["passages"] == 1  # type: ignore[index]
    assert first["index"]["memberships"] >= first["index"]["concepts"] > 0  # type: ignore[index]
    assert first["index"]["llm_calls"] == 0  # type: ignore[index]
    assert first["relevance_tests"] > 0  # type: ignore[index]
    assert first["budgets"]["seed_k"]["limit"] == 12  # type: ignore[index]
    assert first["usage"]["model_calls"] == 1  # type: ignore[index]
    plain = await client.post(f"/v1/workspaces/{written}/query", json={"query": QUESTION, "mode": "lazy-wide"})
    # The name, the workspace, what the tenant has spent, and the ledger once more.
    assert second["usage"]["sql_statements"] == plain.json()["usage"]["sql_statements"] + 4  # type: ignore[index]
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        rows = await session.scalars(select(UsageEvent).where(UsageEvent.query_id == first["query_id"]))  # type: ignore[index]
        assert {(row.purpose, row.calls) for row in rows} == {("embed_query", 1), ("answer", 1)}


async def test_a_stream_ends_with_usage_citations_and_metadata(
    sdk: openai.AsyncOpenAI, written: WorkspaceId, stub_llm: StubServer
) -> None:
    stub_llm.set_faults({"kind": "answer", "body": "word " * 60 + "[1]", "finish_reason": "length", "times": 2})
    for options in ({"include_usage": True}, None):
        extra: Any = {} if options is None else {"stream_options": options}
        stream = await sdk.chat.completions.create(
            model="acme-handbook:lazy", messages=ASKED, stream=True, extra_body={"trellis": {"footer": True}}, **extra
        )
        chunks = [chunk async for chunk in stream]
        said = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
        assert "".join(said) == "word " * 60 + "[1]\n\nSources:\n[1] Supply"
        assert len(said) > 4
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"
        last = chunks[-1].to_dict()
        assert last["trellis"]["mode"] == "lazy"
        assert last["citations"][0]["title"] == "Supply"
        assert (chunks[-1].usage is not None and chunks[-1].usage.completion_tokens > 0) == (options is not None)
        assert all("trellis" not in chunk.to_dict() for chunk in chunks[:-1])


async def test_the_offline_model_quotes_and_says_so(
    server_url: str, key: str, quoted: WorkspaceId, sdk: openai.AsyncOpenAI
) -> None:
    def ask() -> tuple[Any, str]:
        with openai.OpenAI(base_url=server_url, api_key=key, max_retries=0) as client:
            whole = client.chat.completions.create(model="offline:mix", messages=ASKED, temperature=0.5)
            stream = client.chat.completions.create(model="offline:mix", messages=ASKED, stream=True)
            return whole, "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    whole, streamed = await asyncio.to_thread(ask)
    text = whole.choices[0].message.content
    assert text == streamed
    assert text.startswith(OFFLINE_NOTICE)
    assert "- Kestrel Polymers makes the seals of the Tideline Sensor in Porto. [1]" in text
    told = whole.to_dict()["trellis"]
    assert told["is_extractive"] is True
    assert told["routing"] is None
    assert told["experimental"] is False
    assert any("temperature" in note for note in told["notes"])
    assert whole.usage.completion_tokens > 0


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "unsupported_parameter", "tools"),
        ({"n": 2}, "unsupported_parameter", "n"),
        ({"logprobs": True}, "unsupported_parameter", "logprobs"),
        ({"response_format": {"type": "json_object"}}, "unsupported_parameter", "response_format"),
        ({"extra_body": {"top_k": 5}}, "unsupported_parameter", "top_k"),
        ({"temperature": 3}, "validation_error", "temperature"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "validation_error", "max_tokens"),
        ({"max_completion_tokens": 16_385}, "validation_error", "max_completion_tokens"),
        ({"stop": ["a"] * 5}, "validation_error", "stop"),
        ({"extra_body": {"trellis": {"mode": "lazy"}}}, "validation_error", "trellis.mode"),
        ({"extra_body": {"trellis": {"topk": 5}}}, "validation_error", "trellis.topk"),
        ({"extra_body": {"trellis": {"top_k": 0}}}, "validation_error", "trellis.top_k"),
        ({"extra_body": {"trellis": {"footer": "yes"}}}, "validation_error", "trellis.footer"),
        ({"messages": [{"role": "user", "content": " "}]}, "validation_error", "messages"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, "validation_error", "messages"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]}, "unsupported_parameter", "messages.0.tool_call_id"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
            "unsupported_parameter",
            "messages.0.content.0",
        ),
    ],
)  # fmt: skip
async def test_what_cannot_be_honoured_is_refused(
    sdk: openai.AsyncOpenAI, tenancy: Tenancy, body: dict[str, Any], code: str, param: str
) -> None:
    await named(tenancy, await tenancy.add_workspace(), "Acme Handbook")
    with pytest.raises(openai.BadRequestError) as refusal:
        await sdk.chat.completions.create(**{"model": "acme-handbook:lazy", "messages": ASKED, **body})
    assert (refusal.value.code, refusal.value.param) == (code, param)
    assert refusal.value.type == "invalid_request_error"


async def test_refusals_are_the_sdk_s_own(
    sdk: openai.AsyncOpenAI, server_url: str, tenancy: Tenancy, other_tenancy: Tenancy
) -> None:
    mine, theirs = await tenancy.add_workspace(), await other_tenancy.add_workspace()
    await named(tenancy, mine, "Mine")
    for model in ("mine:best", "mine", "theirs:lazy", f"{theirs}:lazy", "mi\x00ne:lazy", "Mine:lazy", ":lazy"):
        with pytest.raises(openai.NotFoundError) as unknown:
            await sdk.chat.completions.create(model=model, messages=ASKED)
        assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.ConflictError) as missing:
        await sdk.chat.completions.create(model="mine:lazy", messages=ASKED)
    assert missing.value.code == "chat_model_missing"
    with pytest.raises(openai.AuthenticationError) as anonymous:
        await sdk.with_options(api_key="trl_x_y").models.list()
    assert (anonymous.value.code, anonymous.value.type) == ("invalid_api_key", "authentication_error")
    async with httpx.AsyncClient() as plain:
        lost = await plain.get(f"{server_url}/embeddings", headers={"Authorization": f"Bearer {sdk.api_key}"})
    assert lost.json()["error"]["code"] == "route_not_found"


async def test_a_model_that_fails_is_an_error_of_the_answer(
    sdk: openai.AsyncOpenAI, written: WorkspaceId, stub_llm: StubServer
) -> None:
    for stream in (False, True):
        stub_llm.set_faults({"kind": "answer", "status": 500})
        with pytest.raises(openai.InternalServerError) as away:
            await sdk.chat.completions.create(model="acme-handbook:lazy", messages=ASKED, stream=stream)
        assert (away.value.status_code, away.value.code) == (503, "model_unavailable")
    stub_llm.set_faults({"kind": "answer", "status": 401})
    with pytest.raises(openai.InternalServerError) as rejected:
        await sdk.chat.completions.create(model="acme-handbook:lazy", messages=ASKED)
    assert (rejected.value.status_code, rejected.value.code) == (502, "model_rejected")


async def test_a_client_that_goes_ends_the_call_of_the_model_and_pays_for_what_it_heard(
    sdk: openai.AsyncOpenAI, written: WorkspaceId, stub_llm: StubServer, tenancy: Tenancy
) -> None:
    stub_llm.set_faults({"kind": "answer", "body": "word " * 5000, "piece_ms": 20})
    stream = await sdk.chat.completions.create(model="acme-handbook:lazy", messages=ASKED, stream=True)
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    await stream.close()

    async def is_broken() -> bool:
        return bool((await asyncio.to_thread(stub_llm.stats))["broken_streams"])

    async def is_booked() -> bool:
        async with tenancy.database.tenant(tenancy.tenant_id) as session:
            found = await session.scalars(
                select(UsageEvent).where(UsageEvent.workspace_id == written, UsageEvent.purpose == "answer")
            )
            return [(row.calls, row.is_estimated) for row in found] == [(1, True)]

    await until(is_broken)
    await until(is_booked)


async def test_a_client_that_does_not_wait_for_an_answer_ends_the_call_too(
    server_url: str, key: str, written: WorkspaceId, stub_llm: StubServer, tenancy: Tenancy
) -> None:
    stub_llm.set_faults({"kind": "answer", "delay_ms": 60_000})
    headers = {"Authorization": f"Bearer {key}"}
    body = {"model": "acme-handbook:lazy", "messages": ASKED}
    async with httpx.AsyncClient(headers=headers, timeout=120) as plain:
        asking = asyncio.create_task(plain.post(f"{server_url}/chat/completions", json=body))

        async def is_asked() -> bool:
            return bool((await asyncio.to_thread(stub_llm.stats))["in_flight"].get("answer"))

        await until(is_asked)
        asking.cancel()
        await asyncio.wait([asking])

    async def is_booked() -> bool:
        async with tenancy.database.tenant(tenancy.tenant_id) as session:
            found = await session.scalars(
                select(UsageEvent).where(UsageEvent.workspace_id == written, UsageEvent.purpose == "answer")
            )
            return [(row.calls, row.is_estimated) for row in found] == [(1, True)]

    await until(is_booked)


async def test_auto_says_what_it_picked(sdk: openai.AsyncOpenAI, quoted: WorkspaceId) -> None:
    answer = await sdk.chat.completions.create(model="offline:auto", messages=ASKED)
    told: Any = answer.to_dict()["trellis"]
    assert told["mode"] == told["routing"]["mode"] in MODES
    assert told["routing"]["reason"]


async def test_requests_as_open_webui_sends_them(
    server_url: str, key: str, written: WorkspaceId, stub_llm: StubServer
) -> None:
    """A chat turn and the making of its title, as its backend forwards them to a connection."""
    turn = {
        "stream": True,
        "model": "acme-handbook:lazy-balanced",
        "messages": [
            {"role": "system", "content": "You are helpful."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello!", "refusal": None, "annotations": []},
            {"role": "user", "content": QUESTION},
        ],
        "temperature": 0.7, "max_tokens": 512, "stop": ["</s>"], "seed": 0, "frequency_penalty": 0, "top_p": 1,
        "stream_options": {"include_usage": True}, "logit_bias": {}, "tools": [], "user": "someone",
    }  # fmt: skip
    title = {
        "model": "acme-handbook:lazy-balanced",
        "messages": [{"role": "user", "content": "### Task:\nGenerate a title.\n### Chat History:\nUSER: Hi"}],
        "stream": False, "max_completion_tokens": 1000, "metadata": {"task": "title_generation"},
    }  # fmt: skip
    async with httpx.AsyncClient(base_url=server_url, headers={"Authorization": f"Bearer {key}"}) as plain:
        models = (await plain.get("/models")).json()
        assert turn["model"] in [model["id"] for model in models["data"]]
        told = await plain.post("/chat/completions", json=turn)
        assert told.headers["content-type"].startswith("text/event-stream")
        frames = told.text.strip().split("\n\n")
        assert frames[-1] == "data: [DONE]"
        events = [json.loads(frame.removeprefix("data: ")) for frame in frames[:-1]]
        assert {event["object"] for event in events} == {"chat.completion.chunk"}
        assert len({event["id"] for event in events}) == 1
        assert events[0]["choices"][0]["delta"]["role"] == "assistant"
        assert (events[-1]["choices"], set(events[-1]) >= {"usage", "citations", "trellis"}) == ([], True)
        whole = (await plain.post("/chat/completions", json=title)).json()
        assert whole["choices"][0]["message"]["content"]
