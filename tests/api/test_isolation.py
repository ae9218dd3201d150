"""Walks the documented routes as another tenant, as every role, and with a key of another workspace.

A new route joins by itself: what its path needs is looked up in the list above it, or made from the documented example.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.domain.tenants.records import Role
from app.main import create_app
from tests.api.conftest import Connect, Index
from tests.api.documents import DIRECT_MODES, upload_text
from tests.factories import Tenancy

DOCUMENT = create_app().openapi()
MARKER = "Zyxomma"
PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    role: str
    body: Any
    """The documented example, if it takes JSON."""

    is_endless: bool
    """A stream, which whoever may read it is never done with."""
    documented: dict[str, Any]

    @property
    def sent(self) -> dict[str, Any]:
        """What a request needs beside its path: the documented example of its body and of what its query must hold."""
        params = {
            parameter["name"]: parameter["schema"]["examples"][0]
            for parameter in self.documented.get("parameters", ())
            if parameter["in"] == "query" and parameter.get("required")
        }
        content = self.documented.get("requestBody", {}).get("content", {})
        plain = {name: media["example"] for name, media in content.items() if "example" in media}
        if self.body is None and plain:
            name, text = next(iter(plain.items()))
            return {"params": params, "content": text, "headers": {"Content-Type": name}}
        return {"params": params, "json": self.body}

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def operations() -> Iterator[Operation]:
    for path, methods in DOCUMENT["paths"].items():
        for method, documented in methods.items():
            if role := documented.get("x-required-role"):
                is_endless = "text/event-stream" in documented["responses"].get("200", {}).get("content", {})
                yield Operation(method.upper(), path, role, example(documented), is_endless, documented)


def example(documented: dict[str, Any]) -> Any:
    content = documented.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    if "examples" in content:
        return next(iter(content["examples"].values()))["value"]
    return DOCUMENT["components"]["schemas"][content["schema"]["$ref"].rsplit("/", 1)[1]]["examples"][0]


OPERATIONS = [operation for operation in operations() if operation.role != "operator"]
OPERATORS = [operation for operation in operations() if operation.role == "operator"]


def filled(path: str, values: dict[str, Any]) -> str:
    return PARAMETER.sub(lambda found: str(values.get(found[1], uuid4())), path)


@dataclass
class Owner:
    """A tenant with something of everything, and what its paths are filled with."""

    client: httpx.AsyncClient
    values: dict[str, Any] = field(default_factory=dict)

    async def arrange(self, path: str) -> None:
        """Make sure that every parameter of `path` names something that is there."""
        for found in PARAMETER.finditer(path):
            if found[1] not in self.values:
                collection = filled(path[: found.start()].rstrip("/"), self.values)
                self.values[found[1]] = await self._first_of(collection, path[: found.start()].rstrip("/"))

    async def _first_of(self, collection: str, template: str) -> Any:
        listed = await self.client.get(collection)
        told = listed.json() if listed.status_code == 200 else {}
        items = told.get("items") or told.get("data", [])  # OpenAI's lists call them so
        if not items and "post" in DOCUMENT["paths"].get(template, {}):
            made = await self.client.post(collection, json=example(DOCUMENT["paths"][template]["post"]))
            items = [made.json()] if made.status_code < 300 else []
        names = [items[0][key] for key in ("id", "name", "alias") if key in items[0]] if items else []
        return names[0] if names else uuid4()


@pytest.fixture
async def owner(client: httpx.AsyncClient, tenancy: Tenancy, index: Index) -> Owner:
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"))
    document = await upload_text(
        client, workspace_id, f"{MARKER} Alpha met {MARKER} Omega in Lindau.", title=f"About {MARKER}", filename="a.txt"
    )
    await index(tenancy, document)
    query = {"query": MARKER, "mode": "baseline"}
    answer = (await client.post(f"/v1/workspaces/{workspace_id}/query", json=query)).json()
    owner = Owner(client, {"workspace_id": workspace_id, "document_id": document["id"], "name": f"{MARKER} Alpha"})
    owner.values["passage_id"] = answer["citations"][0]["link"].rsplit("/", 1)[1]
    for operation in OPERATIONS:
        await owner.arrange(operation.path)
    return owner


# Asking for these calls a model, which the sums of usage show; and the first tells how long it took.
VOLATILE = {"/v1/workspaces/{workspace_id}/concepts/graph", "/v1/usage"}


async def everything_of(owner: Owner) -> dict[str, str]:
    """What the owner reads on every path; what a stranger did would show."""
    return {
        operation.path: re.sub(r'"last_used_at":(null|"[^"]*")', "", response.text)
        for operation in OPERATIONS
        if operation.method == "GET" and not operation.is_endless and operation.path not in VOLATILE
        for response in [await owner.client.get(filled(operation.path, owner.values), params=operation.sent["params"])]
        if response.headers["content-type"].startswith("application/json")
    }


def shows(response: httpx.Response, owner: Owner) -> bool:
    told = {
        MARKER,
        *(str(value) for name, value in owner.values.items() if name.endswith("_id") and len(str(value)) > 20),
    }
    # A refusal may repeat the id that was asked for, and nothing else.
    return response.is_success and any(word in response.text for word in told)


async def test_no_path_with_another_tenant_s_ids_answers(
    owner: Owner, stranger: httpx.AsyncClient, other_tenancy: Tenancy
) -> None:
    """Case C1 over HTTP, for every route there is."""
    await other_tenancy.add_workspace()
    before = await everything_of(owner)
    assert MARKER in str(before)
    wrong = {}
    for operation in OPERATIONS:
        response = await stranger.request(operation.method, filled(operation.path, owner.values), **operation.sent)
        expected = response.status_code == 404 if "{" in operation.path else response.status_code < 500
        if not expected or shows(response, owner):
            wrong[operation.name] = (response.status_code, response.text[:200])
    assert wrong == {}
    assert await everything_of(owner) == before


async def test_ids_of_a_body_are_checked_too(owner: Owner, stranger: httpx.AsyncClient) -> None:
    """Bodies that may name a workspace or document: another tenant's is not found."""
    wrong = {}
    for operation in OPERATIONS:
        if not isinstance(operation.body, dict):
            continue
        foreign = {name: str(owner.values[name]) for name in ("workspace_id", "document_id") if name in owner.values}
        schema = str(DOCUMENT["paths"][operation.path][operation.method.lower()]["requestBody"])
        named = {name: value for name, value in foreign.items() if name in schema_of(schema)}
        if named and "{" not in operation.path:
            response = await stranger.request(operation.method, operation.path, json=operation.body | named)
            if response.status_code != 404:
                wrong[operation.name] = response.status_code
    assert wrong == {}


def schema_of(request_body: str) -> set[str]:
    names = re.findall(r"#/components/schemas/(\w+)", request_body)
    return {
        field_name for name in names for field_name in DOCUMENT["components"]["schemas"][name].get("properties", {})
    }


@pytest.mark.parametrize("role", Role)
async def test_every_verb_asks_for_its_role(connect: Connect, tenancy: Tenancy, role: Role) -> None:
    caller = await connect(tenancy, role)
    wrong = {}
    for operation in OPERATIONS:
        response = await caller.request(operation.method, filled(operation.path, {}), **operation.sent)
        is_refused = response.status_code == 403 and response.json()["code"] == "role_required"
        may = role.covers(Role(operation.role))
        if is_refused == may or response.status_code == 401 or response.status_code >= 500:
            wrong[operation.name] = (operation.role, response.status_code)
    assert wrong == {}


async def test_without_a_key_nothing_answers(anonymous: httpx.AsyncClient) -> None:
    statuses = {
        (await anonymous.request(operation.method, filled(operation.path, {}), **operation.sent)).status_code
        for operation in [*OPERATIONS, *OPERATORS]
    }
    assert statuses == {401}


@pytest.mark.parametrize("role", Role)
async def test_no_key_of_a_tenant_opens_an_operator_s_route(connect: Connect, tenancy: Tenancy, role: Role) -> None:
    caller = await connect(tenancy, role)
    for operation in OPERATORS:
        path = filled(operation.path, {"tenant_id": tenancy.tenant_id})
        response = await caller.request(operation.method, path, **operation.sent)
        assert (response.status_code, response.json()["code"]) == (401, "invalid_operator_secret"), operation.name


async def test_a_key_of_another_workspace_sees_nothing_of_this_one(
    owner: Owner, connect: Connect, tenancy: Tenancy
) -> None:
    bound = await connect(tenancy, Role.ADMIN, workspace_id=await tenancy.add_workspace())
    before = await everything_of(owner)
    wrong = {}
    for operation in OPERATIONS:
        response = await bound.request(operation.method, filled(operation.path, owner.values), **operation.sent)
        is_closed = response.status_code in (403, 404) if "{" in operation.path else response.status_code < 500
        if not is_closed or shows(response, owner):
            wrong[operation.name] = (response.status_code, response.text[:200])
    assert wrong == {}
    assert await everything_of(owner) == before


@pytest.mark.parametrize("mode", DIRECT_MODES)
async def test_a_marker_is_found_by_its_own_tenant_only(
    owner: Owner, stranger: httpx.AsyncClient, other_tenancy: Tenancy, index: Index, mode: str
) -> None:
    workspace_id = await other_tenancy.add_workspace(engines=("lazy", "graph"))
    await index(other_tenancy, await upload_text(stranger, workspace_id, "Ruckus Beta met Quietus in Lindau."))
    query = {"query": f"Who met {MARKER} Alpha in Lindau?", "mode": mode, "include_partial": True}
    foreign = await stranger.post(f"/v1/workspaces/{workspace_id}/query", json=query)
    assert foreign.status_code == 200
    assert f"{MARKER} Omega" not in foreign.text
    own = await owner.client.post(f"/v1/workspaces/{owner.values['workspace_id']}/query", json=query)
    assert f"{MARKER} Omega" in own.text


async def test_a_cursor_of_another_tenant_leads_nowhere(owner: Owner, stranger: httpx.AsyncClient) -> None:
    """A cursor holds a position only, and every query filters anew."""
    for operation in OPERATIONS:
        parameters = DOCUMENT["paths"][operation.path][operation.method.lower()].get("parameters", ())
        if not any(parameter["name"] == "cursor" for parameter in parameters):
            continue
        await owner.client.post("/v1/workspaces", json={"name": str(uuid4())})
        path = filled(operation.path, owner.values)
        needed = operation.sent["params"]
        needed |= {name: owner.values[name] for name in needed if name in owner.values}
        cursor = (await owner.client.get(path, params=needed | {"limit": 1})).json()["next_cursor"]
        params = needed | ({"cursor": cursor} if cursor else {})
        response = await stranger.get(path, params=params)
        assert not shows(response, owner), operation.name
        assert response.status_code in (200, 404), operation.name
