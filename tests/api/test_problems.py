"""Every refusal is a problem, whoever refuses."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from app.api.middleware import DEFAULT_BODY_LIMIT
from app.bootstrap import Container
from app.db.session import Database
from app.domain.readiness import Readiness
from app.domain.workspaces.repository import WorkspaceRepository
from app.main import create_app
from tests.factories import Tenancy

MEMBERS = {"type", "title", "status", "detail", "code", "request_id"}


def checked(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    assert response.headers["content-type"] == "application/problem+json", response.text
    problem: dict[str, object] = response.json()
    assert set(problem) >= MEMBERS
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem["request_id"] == response.headers["x-request-id"]
    return problem


async def test_what_the_framework_refuses_is_a_problem_too(client: httpx.AsyncClient) -> None:
    checked(await client.get("/v1/nothing"), 404, "route_not_found")
    refused = await client.put("/v1/workspaces", json={})
    checked(refused, 405, "method_not_allowed")
    assert refused.headers["allow"]
    checked(await client.get("/v1/workspaces/not-an-id"), 422, "validation_error")
    checked(
        await client.post("/v1/workspaces", content=b"{", headers={"content-type": "application/json"}),
        422,
        "validation_error",
    )


async def test_a_body_that_is_not_json_is_415_and_says_what_is_accepted(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/workspaces", content=b"name=x", headers={"content-type": "text/plain"})
    assert checked(response, 415, "unsupported_media_type")["accepted"] == ["application/json"]


async def test_nested_beyond_reason_is_refused(client: httpx.AsyncClient) -> None:
    body = b'{"name":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    response = await client.post("/v1/workspaces", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)


async def test_a_large_body_is_413_with_the_limit(client: httpx.AsyncClient) -> None:
    body = json.dumps({"name": "x" * DEFAULT_BODY_LIMIT}).encode()
    headers = {"content-type": "application/json"}
    declared = await client.post("/v1/workspaces", content=body, headers=headers)
    assert checked(declared, 413, "too_large")["limit_bytes"] == DEFAULT_BODY_LIMIT

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65536):
            yield body[start : start + 65536]

    streamed = await client.post("/v1/workspaces", content=chunks(), headers=headers)
    assert checked(streamed, 413, "too_large")["limit_bytes"] == DEFAULT_BODY_LIMIT


async def test_a_validation_error_names_the_field_and_does_not_repeat_the_value(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/workspaces", json={"name": "secret-value\x00", "settings": {"gleaning": 99}})
    problem = checked(response, 422, "validation_error")
    assert {error["field"] for error in problem["errors"]} == {"body.name", "body.settings.gleaning"}  # type: ignore[attr-defined]
    assert "secret-value" not in response.text


async def test_a_rule_of_our_own_is_told_without_the_name_of_an_exception(client: httpx.AsyncClient) -> None:
    problem = checked(await client.post("/v1/workspaces", json={"name": "a\x00"}), 422, "validation_error")
    assert problem["detail"] == "body.name: must not hold control characters (U+0000 at position 1)"


async def test_half_a_surrogate_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post(
        "/v1/workspaces", content=b'{"name": "a\\ud800b"}', headers={"content-type": "application/json"}
    )
    checked(response, 422, "validation_error")


@pytest.mark.parametrize("path", ["/v1/me", "/v1/modes", "/v1/workspaces"])
async def test_an_unknown_query_parameter_is_refused(client: httpx.AsyncClient, path: str) -> None:
    problem = checked(await client.get(path, params={"limt": "5"}), 422, "validation_error")
    assert problem["errors"][0]["field"] == "query.limt"  # type: ignore[index]


async def test_a_plain_request_id_is_kept_and_another_replaced(client: httpx.AsyncClient) -> None:
    kept = await client.get("/healthz", headers={"X-Request-ID": "job-42.retry_1"})
    assert kept.headers["x-request-id"] == "job-42.retry_1"
    for strange in ("a b", "x" * 200, "<script>"):
        replaced = await client.get("/healthz", headers={"X-Request-ID": strange})
        assert replaced.headers["x-request-id"] != strange


async def test_what_nobody_foresaw_is_a_500_without_its_message(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def crash(*_: object, **__: object) -> None:
        raise RuntimeError("the text of a document")

    monkeypatch.setattr(WorkspaceRepository, "list", crash)
    response = await client.get("/v1/workspaces", headers={"X-Request-ID": "find-me"})
    checked(response, 500, "internal_error")
    logged = "".join(capsys.readouterr())
    assert "find-me" in logged
    assert "RuntimeError" in logged
    assert "the text of a document" not in logged + response.text


async def test_a_commit_that_fails_is_never_a_success(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(Database, "_commit", fail)
    response = await client.post("/v1/workspaces", json={"name": "never stored"})
    assert response.status_code == 503


async def test_a_database_that_is_away_is_503_and_readiness_says_so(container: Container, tenancy: Tenancy) -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/nothing", pool_size=1)
    app = create_app(replace(container, database=away, readiness=Readiness(away, container.redis)))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://trellis") as client:
            refused = await client.get("/v1/me", headers={"Authorization": "Bearer trl_a_b"})
            checked(refused, 503, "database_unavailable")
            assert int(refused.headers["retry-after"]) > 0
            ready = checked(await client.get("/readyz"), 503, "not_ready")
            assert ready["checks"]["redis"] == "ok"  # type: ignore[index]
            assert (await client.get("/healthz")).status_code == 200
    await away.close()


async def test_ready_names_what_it_checked(anonymous: httpx.AsyncClient) -> None:
    response = await anonymous.get("/readyz")
    assert response.json() == {"status": "ok", "checks": {"postgres": "ok", "redis": "ok"}}
