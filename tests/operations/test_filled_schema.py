"""Migrations on a database with rows: down, up, and all that both schemas can hold is still there and still answers."""

import asyncio
from pathlib import Path

from alembic import command

from app.db.provision import DatabaseUrls
from app.db.schema import alembic_config, upgrade_schema
from tests.cluster import Cluster
from tests.operations.conftest import MakeDatabase
from tests.operations.installation import Filled, answers, settings_of
from tests.operations.rows import columns_of, rows_of

# As far back as a release that is still running may be.
REVISIONS_BACK = 3
# What filling must have left rows in for this to say something.
FILLED_TABLES = {
    "documents", "passages", "mentions", "concept_postings", "lightrag_graph_nodes", "entity_changes", "events", "audit_events",
    "queries",
}  # fmt: skip


def as_administrator(cluster: Cluster, urls: DatabaseUrls) -> str:
    """The URL of a database as a role that row level security does not hold for."""
    return cluster.admin_url.rsplit("/", 1)[0] + "/" + urls.owner.rsplit("/", 1)[1]


def test_rows_outlive_the_way_down_and_up(
    cluster: Cluster, filled: Filled, make_database: MakeDatabase, redis_url: str, tmp_path: Path
) -> None:
    copied = make_database("migrated", filled.urls.owner.rsplit("/", 1)[1])
    original, copy = as_administrator(cluster, filled.urls), as_administrator(cluster, copied)
    columns = asyncio.run(columns_of(original))
    assert asyncio.run(rows_of(original, columns)).keys() >= FILLED_TABLES
    for _ in range(REVISIONS_BACK):
        command.downgrade(alembic_config(copied.owner), "-1")
        shared = asyncio.run(columns_of(copy)) & columns
        assert asyncio.run(rows_of(copy, shared)) == asyncio.run(rows_of(original, shared))
    upgrade_schema(copied.owner)
    assert asyncio.run(columns_of(copy)) == columns
    assert asyncio.run(rows_of(copy, shared)) == asyncio.run(rows_of(original, shared))
    settings = settings_of(copied, redis_url, Path(filled.blob_url.removeprefix("file://")), tmp_path)
    assert asyncio.run(answers(settings, filled)) == filled.answers
