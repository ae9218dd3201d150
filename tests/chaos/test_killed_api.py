"""An API that is killed between taking an Idempotency-Key and keeping its answer: the request is done once all the same."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.api.documents import until as comes_true
from tests.chaos.stack import ChaosStack

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(180)]

KEY = "8e03978e-40d5-43e8-bc93-6894a57f9324"
BODY = {"title": "Log", "text": "Captain Ada Moreau left Port Lindau."}
WAITS_FOR_TABLE = "SELECT count(*) FROM pg_locks WHERE relation = 'documents'::regclass AND NOT granted"
WAITS_FOR_ROW = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%idempotency_keys%'"
)


@asynccontextmanager
async def locked(stack: ChaosStack, statement: str) -> AsyncIterator[None]:
    """In a transaction of the test's own; it is over after the block, and with it what it holds."""
    async with stack.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(statement)
        try:
            yield
        finally:
            await transaction.rollback()


async def until(stack: ChaosStack, query: str) -> None:
    await comes_true(lambda: stack.scalar(query))


async def kill_api(stack: ChaosStack, asking: "asyncio.Task[Any]") -> None:
    await asyncio.to_thread(stack.kill, stack.child("api"))
    with pytest.raises(httpx.TransportError):
        await asking


async def answered(client: httpx.AsyncClient, path: str) -> httpx.Response:
    """Asked again by a client that knows what `idempotency_in_progress` means."""
    while True:
        answer = await client.post(path, json=BODY, headers={"Idempotency-Key": KEY})
        if answer.status_code != 409:
            return answer
        assert answer.json()["code"] == "idempotency_in_progress"
        await asyncio.sleep(float(answer.headers["retry-after"]))


@pytest.mark.parametrize("moment", ["before the effect", "after the effect"])
async def test_the_request_is_repeated_and_has_one_effect(stack: ChaosStack, moment: str) -> None:
    key = await stack.new_key(f"killed {moment}")
    async with httpx.AsyncClient(
        base_url=stack.processes.api_url, headers={"Authorization": f"Bearer {key}"}, timeout=60
    ) as client:
        made = await client.post("/v1/workspaces", json={"name": "w", "engines": ["lazy"]})
        path = f"/v1/workspaces/{made.raise_for_status().json()['id']}/documents"

        async def upload() -> httpx.Response:
            return await client.post(path, json=BODY, headers={"Idempotency-Key": KEY})

        if moment == "before the effect":
            async with locked(stack, "LOCK TABLE documents IN ACCESS EXCLUSIVE MODE"):
                asking = asyncio.create_task(upload())
                await until(stack, WAITS_FOR_TABLE)
                await kill_api(stack, asking)
        else:
            async with stack.connection() as keys:
                async with locked(stack, "LOCK TABLE documents IN ACCESS EXCLUSIVE MODE"):
                    asking = asyncio.create_task(upload())
                    await until(stack, WAITS_FOR_TABLE)
                    held = keys.transaction()
                    await held.start()
                    await keys.execute(f"SELECT 1 FROM idempotency_keys WHERE key = '{KEY}' FOR UPDATE")
                await until(
                    stack,
                    "SELECT count(*) FROM documents d JOIN tenants t ON t.id = d.tenant_id"
                    " WHERE t.name = 'killed after the effect'",
                )
                await until(stack, WAITS_FOR_ROW)
                await kill_api(stack, asking)
                await held.rollback()
        stack.processes.start_api()
        await asyncio.to_thread(stack.wait_for_api)
        answer = await answered(client, path)
        # What had been done is found by its bytes; what had not is done now.
        assert answer.status_code == (202 if moment == "before the effect" else 200)
        listed = (await client.get(path)).json()["items"]
        assert [item["id"] for item in listed] == [answer.json()["documents"][0]["id"]]
        again = await client.post(path, json=BODY, headers={"Idempotency-Key": KEY})
        assert (again.content, again.headers["idempotent-replayed"]) == (answer.content, "true")
