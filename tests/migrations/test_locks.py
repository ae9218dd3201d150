"""A migration that cannot have its lock: it leaves nothing, says who is in the way, and goes on when the way is free."""

import threading
from collections.abc import Iterator

import pytest
from alembic import command

from app.db.schema import SchemaLocked, alembic_config, upgrade_schema
from tests.migrations.asking import Asker
from tests.migrations.schemas import schema

# Whoever migrates may still read where the schema is, and fails at the end of its work, when it writes that down.
HOLD = "BEGIN; LOCK TABLE alembic_version IN SHARE MODE"
WAITS = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = 'alembic_version'::regclass"


class Holder(Asker):
    """Holds what keeps a migration from its last step."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.ask("execute", HOLD)

    def let_go_after_one_attempt(self) -> None:
        """Wait until a migration waits for us, and until it has given up; then be out of its way."""
        for waited_for in (True, False):
            while self.ask("fetchval", WAITS) != waited_for:
                pass
        self.ask("execute", "ROLLBACK")


@pytest.fixture
def one_behind(empty_database: str) -> str:
    upgrade_schema(empty_database)
    command.downgrade(alembic_config(empty_database), "-1")
    return empty_database


@pytest.fixture
def holder(one_behind: str) -> Iterator[Holder]:
    with Holder(one_behind) as holder:
        yield holder


def test_a_held_lock_is_told_with_its_holder_and_nothing_is_left(one_behind: str, holder: Holder) -> None:
    before = schema(one_behind)
    process = holder.ask("fetchval", "SELECT pg_backend_pid()")
    with pytest.raises(SchemaLocked, match=rf"process {process} \(alembic_version\)"):
        upgrade_schema(one_behind, patience_seconds=0)
    assert schema(one_behind) == before


def test_it_is_tried_again_until_the_lock_is_free(one_behind: str, holder: Holder) -> None:
    before = schema(one_behind)
    watching = threading.Thread(target=holder.let_go_after_one_attempt)
    watching.start()
    upgrade_schema(one_behind)
    watching.join()
    assert schema(one_behind) != before
