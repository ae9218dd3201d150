"""The history of a document over HTTP."""

from app.domain.tenants.records import Role
from tests.api.conftest import Connect, Index
from tests.api.documents import upload_text
from tests.factories import Tenancy


async def test_a_reader_sees_every_change_with_its_reason(connect: Connect, tenancy: Tenancy, index: Index) -> None:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    document = await upload_text(await connect(tenancy), workspace_id, "Ada met Ben in Lindau.")
    await index(tenancy, document)
    reader = await connect(tenancy, Role.READER)
    answer = await reader.get(f"{document['links']['self']}/history")
    assert answer.status_code == 200
    items = answer.json()["items"]
    lazy = [item for item in items if item["engine"] == "lazy"]
    assert [(item["from_state"], item["to_state"], item["reason"]) for item in lazy] == [
        (None, "queued", "added"),
        ("queued", "running", "claimed"),
        ("running", "ready", "finished"),
    ]
    assert all(item["detail"] and item["version_id"] == document["version"]["id"] for item in items)
    assert [item["at"] for item in items] == sorted(item["at"] for item in items)


async def test_another_tenants_history_is_not_there(connect: Connect, tenancy: Tenancy, other_tenancy: Tenancy) -> None:
    document = await upload_text(await connect(tenancy), await tenancy.add_workspace(), "Ada met Ben.")
    answer = await (await connect(other_tenancy)).get(f"{document['links']['self']}/history")
    assert answer.status_code == 404
