"""The operator API: tenants and their keys, behind the operator's secret and nothing else."""

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.bootstrap import Container, Worker
from app.db.session import Database
from app.jobs import ProcessVersion, PurgeTenant
from app.main import create_app
from app.settings import DEVELOPMENT_SECRET, Settings
from tests.api.conftest import Connect, Index
from tests.api.documents import upload_text
from tests.factories import Tenancy
from workers.task import attempt

SECRET = "an operator's secret of this test"
ADMIN = "/v1/admin/tenants"


@pytest.fixture
async def operator(container: Container) -> AsyncIterator[httpx.AsyncClient]:
    settings = container.settings.model_copy(update={"operator_secret": SecretStr(SECRET)})
    opened = Container(**{**container.__dict__, "settings": settings})
    app = create_app(opened)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            base_url="http://trellis",
            headers={"Authorization": f"Bearer {SECRET}"},
        ) as client,
    ):
        yield client


async def test_a_tenant_is_made_and_gets_a_key(operator: httpx.AsyncClient, anonymous: httpx.AsyncClient) -> None:
    name = f"Harbor {uuid4().hex}"
    tenant = (await operator.post(ADMIN, json={"name": name})).json()
    assert tenant["status"] == "active"
    again = await operator.post(ADMIN, json={"name": name})
    assert (again.status_code, again.json()["code"]) == (409, "tenant_exists")
    key = (await operator.post(f"{ADMIN}/{tenant['id']}/keys", json={"name": "first", "role": "admin"})).json()
    me = (await anonymous.get("/v1/me", headers={"Authorization": f"Bearer {key['key']}"})).json()
    assert me["tenant"] == {"id": tenant["id"], "name": name}
    rotated = (await operator.post(f"{ADMIN}/{tenant['id']}/keys/{key['id']}/rotate", json={})).json()
    await operator.delete(f"{ADMIN}/{tenant['id']}/keys/{rotated['id']}")
    listed = (await operator.get(f"{ADMIN}/{tenant['id']}/keys")).json()["items"]
    assert [row["revoked_at"] is not None for row in listed] == [True, True]


@pytest.mark.parametrize("secret", ["", "x", DEVELOPMENT_SECRET, SECRET[:-1], SECRET + "x", "é" * 9])
async def test_nobody_else_gets_in(operator: httpx.AsyncClient, secret: str) -> None:
    response = await operator.get(ADMIN, headers=[(b"Authorization", f"Bearer {secret}".encode())])
    assert (response.status_code, response.json()["code"]) == (401, "invalid_operator_secret")


async def test_a_key_of_a_tenant_opens_nothing_of_an_operator(
    operator: httpx.AsyncClient, client: httpx.AsyncClient
) -> None:
    response = await operator.get(ADMIN, headers={"Authorization": client.headers["Authorization"]})
    assert response.json()["code"] == "invalid_operator_secret"
    assert (await operator.get("/v1/me")).json()["code"] == "invalid_api_key"


async def test_without_a_secret_the_operator_api_is_closed(anonymous: httpx.AsyncClient) -> None:
    for secret in ("", "None", DEVELOPMENT_SECRET):
        response = await anonymous.get(ADMIN, headers={"Authorization": f"Bearer {secret}"})
        assert response.json()["code"] == "invalid_operator_secret"


@pytest.mark.parametrize("secret", [DEVELOPMENT_SECRET, "short", "the secret key of this place"])
def test_a_weak_operator_secret_is_refused_outside_development(secret: str) -> None:
    key = SecretStr("the secret key of this place")
    with pytest.raises(ValueError, match="TRELLIS_OPERATOR_SECRET"):
        Settings(environment="production", secret_key=key, operator_secret=SecretStr(secret))
    Settings(environment="production", secret_key=key, operator_secret=SecretStr(SECRET))


async def test_work_of_a_suspended_tenant_waits_and_goes_on(
    operator: httpx.AsyncClient, client: httpx.AsyncClient, tenancy: Tenancy, worker: Worker
) -> None:
    workspace_id = await tenancy.add_workspace()
    document = await upload_text(client, workspace_id)
    job = ProcessVersion(tenancy.tenant_id, workspace_id, UUID(document["version"]["id"]))
    assert (await operator.post(f"{ADMIN}/{tenancy.tenant_id}/suspend")).json()["status"] == "suspended"
    assert (await client.get("/v1/me")).json()["code"] == "tenant_suspended"
    assert await attempt(worker.jobs, job, runs=1) is None
    await operator.post(f"{ADMIN}/{tenancy.tenant_id}/resume")
    waiting = (await client.get(document["links"]["self"])).json()
    assert (waiting["status"], waiting["engines"]["lazy"]["attempts"]) == ("processing", 0)
    assert await attempt(worker.jobs, job, runs=1) is None
    done = (await client.get(document["links"]["self"])).json()
    assert (done["status"], done["engines"]["lazy"]["attempts"]) == ("ready", 1)


@pytest.mark.parametrize("graph_store", ["table", pytest.param("age", marks=pytest.mark.age)])
async def test_a_deleted_tenant_leaves_nothing_and_the_count_says_so(
    graph_store: str,
    operator: httpx.AsyncClient,
    connect: Connect,
    tenancy: Tenancy,
    other_tenancy: Tenancy,
    worker: Worker,
    index: Index,
) -> None:
    client, neighbour = await connect(tenancy), await connect(other_tenancy)
    for owner, caller in ((tenancy, client), (other_tenancy, neighbour)):
        for engines in (("lazy", "graph"), ("lazy",)):
            store = graph_store if "graph" in engines else "table"
            workspace_id = await owner.add_workspace(engines=engines, graph_store=store)
            await index(owner, await upload_text(caller, workspace_id, "Captain Ada Moreau left Port Lindau."))
    assert await counted(tenancy) > 20
    begun = (await operator.delete(f"{ADMIN}/{tenancy.tenant_id}")).json()
    assert (begun["workspaces_left"], begun["documents_left"], begun["proof"]) == (2, 2, None)
    assert (await client.get("/v1/me")).status_code == 401
    refused = await operator.post(f"{ADMIN}/{tenancy.tenant_id}/keys", json={"name": "late", "role": "reader"})
    assert refused.json()["code"] == "tenant_deleting"
    before = await counted(other_tenancy)
    assert await attempt(worker.jobs, PurgeTenant(tenancy.tenant_id), runs=1) is None
    ended = (await operator.get(f"{ADMIN}/{tenancy.tenant_id}/deletion")).json()
    assert ended["finished_at"] is not None
    assert set(ended["proof"].values()) == {0}
    assert {"objects", "tenants.id", "passages.tenant_id", "concept_postings.workspace", "graphs"} <= ended[
        "proof"
    ].keys()
    assert any(name.startswith("lightrag_vdb_entity") for name in ended["proof"])
    assert (await operator.get(f"{ADMIN}/{tenancy.tenant_id}")).json()["code"] == "tenant_not_found"
    assert await worker.container.blobs.list(f"{tenancy.tenant_id}/") == []
    assert await counted(other_tenancy) == before
    assert await attempt(worker.jobs, PurgeTenant(tenancy.tenant_id), runs=1) is None


async def counted(tenancy: Tenancy) -> int:
    """Rows of the tenant over the whole schema."""
    async with tenancy.owner_database.operator(tenancy.tenant_id) as session:
        workspaces = (
            await session.execute(
                text("SELECT id, number FROM workspaces WHERE tenant_id = :t"), {"t": tenancy.tenant_id}
            )
        ).all()
        statement = text("SELECT sum(remaining) FROM tenant_residue(:t, CAST(:ids AS uuid[]), CAST(:numbers AS int[]))")
        values = {
            "t": tenancy.tenant_id,
            "ids": [str(row.id) for row in workspaces],
            "numbers": [row.number for row in workspaces],
        }
        return int(await session.scalar(statement, values))


async def test_a_deletion_whose_message_was_lost_is_sent_again(
    operator: httpx.AsyncClient, tenancy: Tenancy, worker: Worker
) -> None:
    await operator.delete(f"{ADMIN}/{tenancy.tenant_id}")
    assert ("tenant", PurgeTenant(tenancy.tenant_id)) in await worker.sweeper._stale_jobs()


async def test_the_count_is_an_operator_s_only(tenancy: Tenancy) -> None:
    async with tenancy.database.tenant(tenancy.tenant_id) as session:
        with pytest.raises(DBAPIError, match="only an operator"):
            await session.execute(text("SELECT * FROM tenant_residue(:t, '{}', '{}')"), {"t": tenancy.tenant_id})


async def test_a_tenant_s_own_transaction_cannot_change_the_tenant(tenancy: Tenancy, database: Database) -> None:
    async with database.tenant(tenancy.tenant_id) as session:
        changed = await session.execute(text("UPDATE tenants SET name = 'mine' RETURNING id"))
        assert changed.all() == []
        assert (await session.execute(text("DELETE FROM tenants RETURNING id"))).all() == []
