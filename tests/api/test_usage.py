"""What was used is told to the token, by whatever it was used for."""

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.db.session import Database
from app.settings import Settings
from tests.api.conftest import Connect, Index
from tests.api.documents import upload_text
from tests.factories import Tenancy, register_stub
from tests.fakes.stub_process import StubServer

TEXT = "Captain Ada Moreau left Port Lindau with Ben Okri. The crew of the Meridian followed her to Bregenz."


async def test_it_equals_the_provider_s_own_count(
    client: httpx.AsyncClient,
    tenancy: Tenancy,
    index: Index,
    stub_llm: StubServer,
    owner_database: Database,
    settings: Settings,
) -> None:
    prices = {"price_input": 2.0, "price_output": 8.0}
    chat = await register_stub(stub_llm, owner_database, settings, **prices)
    embedding = await register_stub(
        stub_llm, owner_database, settings, role="embedding", dimension=384, price_input=0.5
    )
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"), chat=chat, embedding=embedding)
    document = await upload_text(client, workspace_id, TEXT)
    await index(tenancy, document)
    asked = {"query": "Who left Port Lindau?", "mode": "mix", "keywords": "llm"}
    answer = (await client.post(f"/v1/workspaces/{workspace_id}/query", json=asked)).json()
    counted = stub_llm.stats()["tokens"]
    report = (await client.get("/v1/usage", params={"group_by": "model"})).json()
    by_model = {item["key"]: item for item in report["items"]}
    assert by_model[embedding]["tokens_in"] == counted["embed_in"]
    chat_in = sum(count for name, count in counted.items() if name.endswith("_in") and name != "embed_in")
    chat_out = sum(count for name, count in counted.items() if name.endswith("_out"))
    assert (by_model[chat]["tokens_in"], by_model[chat]["tokens_out"]) == (chat_in, chat_out)
    assert report["total"]["estimated_calls"] == 0
    assert by_model[chat]["cost"] == pytest.approx((2.0 * chat_in + 8.0 * chat_out) / 1_000_000)
    assert report["total"]["cost"] == pytest.approx(
        (2.0 * chat_in + 8.0 * chat_out + 0.5 * counted["embed_in"]) / 1_000_000
    )
    shares = [
        (await client.get("/v1/usage", params=wanted)).json()["total"]
        for wanted in ({"document_id": document["id"]}, {"query_id": answer["id"]})
    ]
    assert sum(share["tokens_in"] for share in shares) == report["total"]["tokens_in"]
    own = shares[1]
    assert (own["tokens_in"], own["tokens_out"]) == (answer["usage"]["tokens_in"], answer["usage"]["tokens_out"])
    assert own["cost"] == pytest.approx(answer["usage"]["cost"])
    for group_by, key in (("document", document["id"]), ("query", answer["id"]), ("workspace", str(workspace_id))):
        items = (await client.get("/v1/usage", params={"group_by": group_by})).json()["items"]
        assert [item["key"] for item in items] == [key]
    [today] = (await client.get("/v1/usage")).json()["items"]
    assert today["tokens_in"] == report["total"]["tokens_in"]
    month = report["limits"]["model_tokens_per_month"]["used"]
    assert month == report["total"]["tokens_in"] + report["total"]["tokens_out"]


async def test_a_key_of_one_workspace_sees_that_one_s_usage(
    client: httpx.AsyncClient, connect: Connect, tenancy: Tenancy, index: Index
) -> None:
    first, second = await tenancy.add_workspace(), await tenancy.add_workspace()
    for workspace_id in (first, second):
        await index(tenancy, await upload_text(client, workspace_id, TEXT))
    bound = await connect(tenancy, workspace_id=first)
    items = (await bound.get("/v1/usage", params={"group_by": "workspace"})).json()["items"]
    assert [item["key"] for item in items] == [str(first)]
    assert (await bound.get("/v1/usage")).json()["limits"] is None
    refused = await bound.get("/v1/usage", params={"workspace_id": str(second)})
    assert refused.json()["code"] == "workspace_not_found"


async def test_each_tenant_sees_its_own(
    client: httpx.AsyncClient, stranger: httpx.AsyncClient, tenancy: Tenancy, index: Index
) -> None:
    document = await upload_text(client, await tenancy.add_workspace(), TEXT)
    await index(tenancy, document)
    report = (await stranger.get("/v1/usage", params={"document_id": document["id"]})).json()
    assert (report["total"]["calls"], report["items"]) == (0, [])


@pytest.mark.parametrize("change", ["UPDATE usage_events SET tokens_in = 0", "DELETE FROM usage_events"])
async def test_nobody_who_serves_requests_may_change_it(tenancy: Tenancy, change: str) -> None:
    with pytest.raises(DBAPIError, match="permission denied"):
        async with tenancy.database.tenant(tenancy.tenant_id) as session:
            await session.execute(text(change))
