"""Connections that are gone are replaced when they are taken from the pool, without asking each time."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import asyncpg
import pytest
from sqlalchemy import event, make_url, text

from app.db import session
from app.db.acting import Acting, nobody_acts, note_caller
from app.db.session import Database
from tests.cluster import Cluster


async def answers(database: Database) -> bool:
    async with database.system() as unit:
        return bool(await unit.scalar(text("SELECT 1")) == 1)


async def test_connections_that_the_server_cut_are_replaced(database: Database, cluster: Cluster) -> None:
    assert await answers(database)
    administrator = await asyncpg.connect(cluster.admin_url)
    cut = await administrator.fetch(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1 AND usename = 'trellis_app'",
        database.engine.url.database,
    )
    await administrator.close()
    assert cut
    assert await answers(database)


class Relay:
    """A port that leads to the server. `drop` cuts the far ends of its connections and tells nobody."""

    def __init__(self, host: str, port: int) -> None:
        self.there = (host, port)
        self.far_ends: list[asyncio.StreamWriter] = []
        self.dropped: set[asyncio.StreamWriter] = set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self.there)
        self.far_ends.append(far_writer)

        async def back() -> None:
            while data := await far_reader.read(65536):
                writer.write(data)
            if far_writer not in self.dropped:
                writer.close()

        answering = asyncio.ensure_future(back())
        while data := await reader.read(65536):
            if far_writer in self.dropped:
                break
            far_writer.write(data)
        far_writer.close()
        await answering
        writer.close()

    async def drop(self) -> None:
        for writer in self.far_ends:
            self.dropped.add(writer)
            writer.close()
            await writer.wait_closed()


@asynccontextmanager
async def listening(relay: Relay) -> AsyncIterator[int]:
    server = await asyncio.start_server(relay.connect, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


async def test_a_connection_that_was_dropped_on_the_way_is_found_by_asking(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PING_AFTER_SECONDS", 0.0)
    url = make_url(database.engine.url.set(drivername="postgresql"))
    relay = Relay(url.host or "", url.port or 0)
    async with listening(relay) as port:
        there = Database(url.set(host="127.0.0.1", port=port).render_as_string(hide_password=False), pool_size=1)
        assert await answers(there)
        await relay.drop()
        assert await answers(there)
        assert len(relay.far_ends) == 2
        await there.close()


SETTING = text("SELECT current_setting('app.tenant_id', true)")


@pytest.fixture
async def narrow(database: Database) -> AsyncIterator[Database]:
    """One connection, which every unit of work gets in turn."""
    url = database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    there = Database(url, pool_size=1)
    yield there
    await there.close()


async def acting_for(database: Database) -> str:
    async with database.system() as unit:
        return await unit.scalar(SETTING) or ""


async def fail(database: Database, tenant_id: UUID) -> None:
    async with database.tenant(tenant_id) as unit:
        await unit.scalar(SETTING)
        raise ZeroDivisionError


async def test_a_statement_without_a_tenant_is_a_transaction_of_its_own(database: Database) -> None:
    async with database.statement() as unit:
        number = text("SELECT pg_current_xact_id()")
        assert await unit.scalar(number) != await unit.scalar(number)


async def test_whose_a_unit_is_goes_with_its_beginning_and_ends_with_it(narrow: Database) -> None:
    tenant_id = uuid4()
    sent: list[str] = []
    event.listen(narrow.engine.sync_engine, "before_cursor_execute", lambda *call: sent.append(call[2]))
    async with narrow.tenant(tenant_id) as unit:
        assert await unit.scalar(SETTING) == str(tenant_id)
    assert len(sent) == 1
    assert await acting_for(narrow) == ""
    with pytest.raises(ZeroDivisionError):
        await fail(narrow, tenant_id)
    assert await acting_for(narrow) == ""


async def test_a_unit_that_ends_before_its_first_statement_leaves_its_tenant_to_nobody(narrow: Database) -> None:
    async with narrow.tenant(uuid4()) as unit:
        await unit.connection()
    assert await acting_for(narrow) == ""
    async with narrow.tenant(uuid4()) as unit:
        await unit.connection()
    async with narrow.statement() as alone:
        assert not await alone.scalar(SETTING)


async def test_who_acts_is_told_word_for_word(narrow: Database) -> None:
    actor = """x', true); SELECT set_config('app.tenant_id', 'other"\\ \u0416"""
    with nobody_acts():
        note_caller(Acting(actor, "route", "address", "request"))
        async with narrow.tenant(uuid4()) as unit:
            told = await unit.scalar(text("SELECT current_setting('app.audit')"))
    assert json.loads(told)["actor"] == actor
