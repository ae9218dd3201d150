"""Readiness asks for real, once for all who ask at the same time, and wants the schema that this code was written for."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from alembic.script import ScriptDirectory
from redis.exceptions import ConnectionError as RedisAway
from sqlalchemy import event

from app.bootstrap import Container
from app.db.revision import newest_revision
from app.db.schema import alembic_config
from app.domain import readiness
from app.domain.readiness import Readiness
from app.main import create_app


@pytest.fixture
async def probe(container: Container) -> AsyncIterator[httpx.AsyncClient]:
    """An application that has not been asked yet."""
    app = create_app(replace(container, readiness=Readiness(container.database, container.redis)))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://trellis") as client,
    ):
        yield client


async def test_fifty_at_once_ask_the_database_once(container: Container, probe: httpx.AsyncClient) -> None:
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    event.listen(container.database.engine.sync_engine, "before_cursor_execute", note)
    try:
        answers = await asyncio.gather(*(probe.get("/readyz") for _ in range(50)))
    finally:
        event.remove(container.database.engine.sync_engine, "before_cursor_execute", note)
    assert {answer.status_code for answer in answers} == {200}
    assert len([statement for statement in asked if "alembic_version" in statement]) == 1


async def no_answer() -> None:
    raise RedisAway


async def test_an_outage_and_its_end_are_seen(
    container: Container, probe: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "FRESH_SECONDS", 0.0)
    assert (await probe.get("/readyz")).status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr(container.redis, "ping", no_answer)
        refused = await probe.get("/readyz")
    assert (refused.status_code, refused.json()["checks"]) == (503, {"postgres": "ok", "redis": "ConnectionError"})
    assert (await probe.get("/readyz")).status_code == 200


@pytest.mark.parametrize(("ours", "status"), [("9999", 503), ("0001", 200)])
async def test_a_schema_older_than_the_code_is_not_ready_and_a_newer_one_is(
    probe: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, ours: str, status: int
) -> None:
    monkeypatch.setattr(readiness, "newest_revision", lambda: ours)
    answer = await probe.get("/readyz")
    assert answer.status_code == status
    assert answer.json()["checks"]["postgres"] == ("ok" if status == 200 else "SchemaBehind")


def test_the_newest_revision_is_alembic_s_head() -> None:
    assert newest_revision() == ScriptDirectory.from_config(alembic_config("postgresql://nowhere")).get_current_head()
