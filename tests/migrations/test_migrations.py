"""The chain of migrations: one head, up and down and up again, and equal to the models."""

from alembic import command
from alembic.script import ScriptDirectory

from app.db.schema import alembic_config, upgrade_schema
from tests.cluster import Cluster
from tests.migrations.schemas import schema


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
