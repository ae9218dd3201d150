"""`trellis workspace check`, as an operator types it, on a workspace that was harmed behind the application's back."""

import asyncio
import os
import sys

import httpx
from sqlalchemy import text

from app.db.session import Database
from app.settings import Settings
from tests.api.conftest import Index
from tests.api.documents import upload_text
from tests.factories import Tenancy

HARM = "DELETE FROM lightrag_graph_nodes WHERE workspace = :workspace AND id = 'Hamburg'"
STOPPED = """
INSERT INTO entity_changes (tenant_id, workspace_id, id, kind, state, names, request, sent_at)
VALUES (:tenant, :workspace_id, gen_random_uuid(), 'edit_entity', 'writing', '{Harbor Works}', '{}', now())"""


async def check(settings: Settings, *words: str) -> tuple[int | None, dict[str, tuple[int, int]]]:
    """The command's exit code, and the lines of its table that are not zero: found, left."""
    secrets = {
        "TRELLIS_DATABASE_URL": settings.database_url,
        "TRELLIS_OWNER_DATABASE_URL": settings.owner_database_url,
        "TRELLIS_ENGINE_DATABASE_URL": settings.engine_database_url,
        "TRELLIS_REDIS_URL": settings.redis_url,
    }
    environment = os.environ | {name: secret.get_secret_value() for name, secret in secrets.items() if secret}
    environment |= {"TRELLIS_SCRATCH_DIR": str(settings.scratch_dir), "COLUMNS": "120"}
    command = [sys.executable, "-m", "app.cli.main", "workspace", "check", *words]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environment
    )
    out, errors = await asyncio.wait_for(process.communicate(), 100)
    rows = [line.split() for line in out.decode().splitlines()[1:]]
    assert rows, errors.decode()
    return process.returncode, {kind: (int(found), int(left)) for kind, found, left in rows if int(found)}


async def test_drift_is_found_and_mended_by_the_command(
    client: httpx.AsyncClient, tenancy: Tenancy, index: Index, owner_database: Database, settings: Settings
) -> None:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    await index(tenancy, await upload_text(client, workspace_id, "Elena Petrova leads Harbor Works in Hamburg."))
    url = f"/v1/workspaces/{workspace_id}/entity"
    before = (await client.get(url, params={"name": "Hamburg"})).json()
    place = str(tenancy.tenant_id), str(workspace_id)
    assert await check(settings, *place) == (0, {})
    async with owner_database.system() as session:
        await session.execute(text(HARM), {"workspace": f"w_{workspace_id.hex}"})
        await session.execute(text(STOPPED), {"tenant": tenancy.tenant_id, "workspace_id": workspace_id})
    assert (await client.get(url, params={"name": "Hamburg"})).status_code == 404
    code, found = await check(settings, *place)
    assert (code, found["unfinished_changes"], found["mention_without_entity"]) == (1, (1, 1), (1, 1))
    code, found = await check(settings, *place, "--mend")
    assert (code, found["unfinished_changes"], found["mention_without_entity"]) == (0, (1, 0), (1, 0))
    assert await check(settings, *place) == (0, {})
    after = (await client.get(url, params={"name": "Hamburg"})).json()
    assert after == before
    (change,) = (await client.get(f"{url.removesuffix('y')}ies/changes")).json()["items"]
    assert (change["state"], change["error_code"]) == ("failed", "interrupted")
