"""A backup of Postgres and of the originals, restored into a new installation, is the installation that it was made of."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db.provision import DatabaseUrls, drop_database, provision_database
from app.db.schema import upgrade_schema
from app.devstack.postgres import install_binaries
from app.domain.ingestion.sweeper import EXPECTED
from app.settings import Settings
from tests.cluster import Cluster
from tests.operations.conftest import DOCUMENTS
from tests.operations.installation import FILES, Filled, ask, call, index, serving, settings_of
from tests.operations.rows import columns_of, rows_of
from tests.operations.test_filled_schema import as_administrator


def run(program: str, *arguments: str) -> None:
    command = [str(install_binaries() / program), *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
    assert answer.returncode == 0, answer.stderr


@pytest.fixture
def restored(
    cluster: Cluster, filled: Filled, worker_number: int, tmp_path: Path
) -> Iterator[tuple[DatabaseUrls, Path]]:
    """The runbook's way: dump, then originals; in the new place roles and database, then the dump, then originals."""
    dump, name = tmp_path / "trellis.dump", f"trellis_restored_{worker_number}"
    run("pg_dump", "--format=custom", f"--file={dump}", as_administrator(cluster, filled.urls))
    shutil.copytree(filled.blob_url.removeprefix("file://"), tmp_path / "blobs")
    urls = asyncio.run(provision_database(cluster.admin_url, name, cluster.passwords))
    run("pg_restore", "--exit-on-error", f"--dbname={as_administrator(cluster, urls)}", str(dump))
    upgrade_schema(urls.owner)
    yield urls, tmp_path / "blobs"
    asyncio.run(drop_database(cluster.admin_url, name))


def test_what_was_backed_up_is_there_and_goes_on(
    cluster: Cluster, filled: Filled, restored: tuple[DatabaseUrls, Path], redis_url: str, tmp_path: Path
) -> None:
    urls, blobs = restored
    original, copy = as_administrator(cluster, filled.urls), as_administrator(cluster, urls)
    columns = asyncio.run(columns_of(original))
    assert asyncio.run(rows_of(copy, columns)) == asyncio.run(rows_of(original, columns))
    settings = settings_of(urls, redis_url, blobs, tmp_path / "scratch")
    asyncio.run(go_on(settings.model_copy(update={"requeue_after_seconds": 0.01}), filled))


async def go_on(settings: Settings, filled: Filled) -> None:
    """Old questions have their old answers, originals are whole, and what was waiting is found and done."""
    async with serving(settings, filled.api_key) as (worker, client):
        assert await ask(client, filled.workspace_path) == filled.answers
        documents = f"{filled.workspace_path}/documents"
        for number, document in enumerate(filled.documents):
            download = await client.get(f"{documents}/{document}/content")
            assert download.content == (DOCUMENTS / FILES[number]).read_bytes()
        report = await worker.sweeper.sweep(is_dry_run=True)
        assert report.found["queued_lazy"] == 1
        await index(worker, filled.waiting)
        for report in (await worker.sweeper.sweep(is_dry_run=True), await worker.leftovers.sweep(is_dry_run=True)):
            assert {kind: found for kind, found in report.found.items() if found and kind not in EXPECTED} == {}
        for document in (await call(client, "GET", documents))["items"]:
            assert document["status"] == "ready"
