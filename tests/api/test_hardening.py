"""What a stranger can do to the HTTP side, and what browsers are told."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.bootstrap import Container
from app.main import create_app
from app.settings import Settings
from tests.live import LiveStack

ORIGIN = "https://app.example.com"


def serving(container: Container, **changes: Any) -> httpx.ASGITransport:
    app = create_app(replace(container, settings=container.settings.model_copy(update=changes)))
    app.state.container = container
    return httpx.ASGITransport(app, raise_app_exceptions=False)


@pytest.mark.parametrize("path", ["/healthz", "/v1/me", "/v1/nothing", "/openapi.json"])
async def test_every_answer_says_that_it_is_data_and_not_to_be_kept(anonymous: httpx.AsyncClient, path: str) -> None:
    headers = (await anonymous.get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"


async def test_the_documentation_may_run_its_scripts_and_not_be_framed(anonymous: httpx.AsyncClient) -> None:
    assert (await anonymous.get("/docs")).headers["content-security-policy"] == "frame-ancestors 'none'"


ASKS = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


async def test_no_page_may_call_it_unless_its_origin_is_named(container: Container) -> None:
    for origins, allowed in (("", None), (ORIGIN, ORIGIN), ("https://other.example.com", None)):
        async with httpx.AsyncClient(transport=serving(container, cors_origins=origins), base_url="http://x") as client:
            asked = await client.options("/v1/workspaces", headers=ASKS)
            got = await client.get("/healthz", headers={"Origin": ORIGIN})
        assert asked.headers.get("access-control-allow-origin") == allowed
        assert got.headers.get("access-control-allow-origin") == allowed
        assert "access-control-allow-credentials" not in got.headers


@pytest.mark.parametrize("origins", ["*", "https://a.example.com/", "app.example.com", "https://a.example.com,*"])
def test_a_wildcard_is_no_origin(origins: str) -> None:
    with pytest.raises(ValueError, match="TRELLIS_CORS_ORIGINS"):
        Settings(cors_origins=origins)


async def test_a_body_that_stands_still_is_refused(container: Container, client: httpx.AsyncClient) -> None:
    async def dripping() -> AsyncIterator[bytes]:
        yield b'{"name": '
        await asyncio.Event().wait()

    key = {"Authorization": client.headers["authorization"], "Content-Type": "application/json"}
    async with httpx.AsyncClient(
        transport=serving(container, body_idle_seconds=0.05), base_url="http://x", headers=key
    ) as slow:
        answer = await slow.post("/v1/workspaces", content=dripping())
        assert (answer.status_code, answer.json()["code"]) == (408, "request_timeout")
        # Whoever waits for an answer is not meant: the body is whole.
        assert (await slow.get("/v1/me")).status_code == 200


@pytest.mark.acceptance
def test_headers_without_end_are_refused(live_stack: LiveStack) -> None:
    host, _, port = live_stack.api_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as stranger:
        stranger.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        with suppress(ConnectionError):
            for number in range(500):
                stranger.sendall(b"X-%d: " % number + b"a" * 60_000 + b"\r\n")
            pytest.fail("30 MB of headers were taken")
