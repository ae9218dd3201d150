"""An index that a migration builds while its table is in use."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from app.db import migrating
from app.db.migrating import MIGRATION_LOCK
from app.db.schema import SchemaLocked, alembic_config, upgrade_schema
from tests.migrations.asking import Asker

REVISION = """
from alembic import op
from app.db.migrating import build_index

revision, down_revision = "test_index", None


def upgrade() -> None:
    build_index(op, "things_name", "things (name)")
"""
WAITERS = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()"
IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('things_name')"
WAITS = "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%' AND wait_event_type = 'Lock'"


@pytest.fixture
def config(empty_database: str, tmp_path: Path) -> Config:
    """Migrations of which there is one, that builds an index."""
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "test_index.py").write_text(REVISION)
    config = alembic_config(empty_database)
    config.set_main_option("version_locations", str(tmp_path / "versions"))
    return config


@pytest.fixture
def owner(empty_database: str) -> Iterator[Asker]:
    with Asker(empty_database) as asker:
        asker.ask("execute", "CREATE TABLE things (name text)")
        yield asker


def test_it_waits_for_older_transactions_for_longer_than_a_migration_for_a_lock(
    config: Config, owner: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "LIMITS", ("SET lock_timeout = '50ms'", "SET statement_timeout = '50ms'"))
    with Asker(config.attributes["url"]) as older:
        older.ask("execute", "BEGIN; INSERT INTO things VALUES ('a')")
        building = threading.Thread(target=command.upgrade, args=(config, "head"))
        building.start()
        while not owner.ask("fetchval", WAITS):
            pass
        owner.ask("execute", "SELECT pg_sleep(0.3)")
        # Nobody waits for it meanwhile.
        owner.ask("execute", "INSERT INTO things VALUES ('b')")
        older.ask("execute", "COMMIT")
        building.join()
    assert owner.ask("fetchval", IS_VALID)


def test_what_a_killed_attempt_left_is_built_anew(config: Config, owner: Asker) -> None:
    with Asker(config.attributes["url"]) as older:
        older.ask("execute", "BEGIN; INSERT INTO things VALUES ('a')")
        outcome: list[Exception] = []
        building = threading.Thread(target=attempt, args=(partial(command.upgrade, config, "head"), outcome))
        building.start()
        while not owner.ask("fetchval", WAITS):
            pass
        owner.ask("execute", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%'")
        building.join()
        older.ask("execute", "COMMIT")
    assert outcome
    assert owner.ask("fetchval", IS_VALID) is False
    command.upgrade(config, "head")
    assert owner.ask("fetchval", IS_VALID) is True


def attempt(migrate: Callable[[], None], outcome: list[Exception]) -> None:
    try:
        migrate()
    except Exception as error:
        outcome.append(error)


def test_whoever_waits_for_its_turn_has_no_transaction_open(empty_database: str, owner: Asker) -> None:
    """An index that is being built would wait for that transaction, and its owner for the index."""
    owner.ask("execute", f"SELECT pg_advisory_lock({MIGRATION_LOCK})")
    seen: list[Exception] = []
    waiting = threading.Thread(target=attempt, args=(partial(upgrade_schema, empty_database, patience_seconds=0), seen))
    waiting.start()
    while waiting.is_alive():
        assert owner.ask("fetch", WAITERS) == []
    waiting.join()
    assert [type(error) for error in seen] == [SchemaLocked]
