"""The chain of migrations: one head, up and down and up again, and equal to the models."""

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest
from alembic import command
from alembic.script import ScriptDirectory

from app.db.provision import drop_database, provision_database
from app.db.schema import alembic_config, upgrade_schema
from tests.cluster import Cluster

SCHEMA = """
SELECT 'column', table_name || '.' || column_name,
       concat_ws(' ', data_type, udt_name, is_nullable, column_default, identity_generation)
  FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL
SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT 'policy', tablename || '.' || policyname, concat_ws(' ', roles::text, cmd, qual, with_check)
  FROM pg_policies WHERE schemaname = 'public'
UNION ALL
SELECT 'table', relname, concat_ws(' ', relkind, relrowsecurity, relforcerowsecurity, relacl::text)
  FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'p')
UNION ALL
SELECT 'function', proname, concat_ws(' ', prosecdef, proacl::text, md5(prosrc))
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prolang <> 13
UNION ALL
SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = 'public'
UNION ALL
SELECT 'trigger', tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
"""


@pytest.fixture
def empty_database(cluster: Cluster, worker_number: int) -> Iterator[str]:
    """The owner's URL of a database that has roles and extension but no schema."""
    name = f"trellis_migrations_{worker_number}"
    urls = asyncio.run(provision_database(cluster.admin_url, name, cluster.passwords))
    yield urls.owner
    asyncio.run(drop_database(cluster.admin_url, name))


def schema(url: str) -> set[tuple[str, str, str]]:
    async def read() -> set[tuple[str, str, str]]:
        connection = await asyncpg.connect(url)
        try:
            return {tuple(row) for row in await connection.fetch(SCHEMA)}
        finally:
            await connection.close()

    return asyncio.run(read())


def test_there_is_one_head(cluster: Cluster) -> None:
    assert len(ScriptDirectory.from_config(alembic_config(cluster.admin_url)).get_heads()) == 1


def test_up_one_down_and_up_again_gives_the_same_schema(empty_database: str) -> None:
    upgrade_schema(empty_database)
    first = schema(empty_database)
    command.downgrade(alembic_config(empty_database), "-1")
    assert schema(empty_database) != first
    upgrade_schema(empty_database)
    assert schema(empty_database) == first


def test_everything_can_be_taken_back(empty_database: str) -> None:
    before = schema(empty_database)
    upgrade_schema(empty_database)
    command.downgrade(alembic_config(empty_database), "base")
    left = {row for row in schema(empty_database) - before if "alembic_version" not in row[1]}
    assert left == set()


def test_models_and_migrations_agree(empty_database: str) -> None:
    upgrade_schema(empty_database)
    command.check(alembic_config(empty_database))


def test_a_second_upgrade_does_nothing(empty_database: str) -> None:
    upgrade_schema(empty_database)
    first = schema(empty_database)
    upgrade_schema(empty_database)
    assert schema(empty_database) == first
