"""`trellis sweep`, in a process of its own, as an operator types it on the serving processes' settings."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from redis import Redis

from app.blobs.store import BlobStore
from app.settings import Settings
from tests.architecture.sources import ROOT
from tests.factories import Tenancy
from tests.workers.uploads import Uploads

pytestmark = pytest.mark.acceptance


def sweep(settings: Settings, folder: Path, *options: str) -> dict[str, tuple[int, int]]:
    """Found and handled, by kind."""
    environment = {
        **os.environ,
        "TRELLIS_DATABASE_URL": settings.database_url.get_secret_value(),
        "TRELLIS_ENGINE_DATABASE_URL": settings.engine_database_url.get_secret_value(),
        "TRELLIS_REDIS_URL": settings.redis_url.get_secret_value(),
        "TRELLIS_BLOB_URL": settings.blob_url,
        "TRELLIS_SCRATCH_DIR": str(folder / "scratch"),
        "TRELLIS_REQUEUE_AFTER_SECONDS": "0.1",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", "sweep", *options],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    return {kind: (int(found), int(handled)) for kind, found, handled in rows}


async def test_a_dry_run_counts_and_a_sweep_sends(tenancy: Tenancy, settings: Settings, tmp_path: Path) -> None:
    uploads = Uploads(tenancy.database, BlobStore(settings.blob_url), tenancy.tenant_id)
    await uploads.add(await tenancy.add_workspace(), "Ada met Ben in Lindau.")
    with Redis.from_url(settings.redis_url.get_secret_value()) as broker:
        before = broker.llen("ingest")
        counted = await asyncio.to_thread(sweep, settings, tmp_path, "--dry-run")
        assert counted["queued_lazy"][0] >= 1
        assert {handled for _, handled in counted.values()} == {0}
        assert {"engine_version", "original", "scratch"} <= set(counted)
        assert broker.llen("ingest") == before
        handled = await asyncio.to_thread(sweep, settings, tmp_path, "--only-stale")
        assert handled["queued_lazy"][1] >= 1
        assert "original" not in handled
        assert broker.llen("ingest") > before
