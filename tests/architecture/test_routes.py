"""Every route asks who is calling, except a short list that says nothing about anybody."""

import inspect
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import pytest
from fastapi import APIRouter, Depends, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from httpx import ASGITransport, AsyncClient

from app.api.access import RouteWithoutAccess, access_of_routes
from app.api.deps import READER, AdminCaller, VerifiedCaller
from app.bootstrap import open_container
from app.main import create_app
from app.settings import Settings

PUBLIC_PATHS = {"/healthz", "/readyz"}
METHODS = {"get", "put", "post", "patch", "delete"}


@pytest.fixture
async def application(settings: Settings) -> AsyncIterator[FastAPI]:
    async with open_container(settings) as container:
        application = create_app(container)
        application.state.container = container
        yield application


def operations(application: FastAPI) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of everything that the API documents."""
    paths = application.openapi()["paths"]
    return [(method, path, paths[path][method]) for path in paths for method in METHODS & paths[path].keys()]


async def test_without_a_key_every_route_answers_401(application: FastAPI) -> None:
    statuses = {}
    async with AsyncClient(transport=ASGITransport(application), base_url="http://test") as client:
        for method, path, _ in operations(application):
            response = await client.request(method, re.sub(r"\{\w+\}", str(uuid4()), path))
            statuses[f"{method} {path}"] = response.status_code
    unasked = {route for route, status in statuses.items() if status != 401}
    assert unasked == {f"get {path}" for path in PUBLIC_PATHS}


async def test_every_route_says_what_it_does_and_how_it_fails(application: FastAPI) -> None:
    silent = [
        f"{method} {path}"
        for method, path, operation in operations(application)
        if not operation.get("summary")
        or (path not in PUBLIC_PATHS and not any(status.startswith("4") for status in operation["responses"]))
    ]
    assert silent == []


def test_a_route_that_declares_no_role_is_refused() -> None:
    router = APIRouter()

    @router.get("/v1/forgotten")
    async def forgotten(_: VerifiedCaller) -> None:
        """Only asks who calls."""

    application = FastAPI()
    application.include_router(router)
    with pytest.raises(RouteWithoutAccess, match="/v1/forgotten"):
        access_of_routes(application)


def test_a_route_that_declares_two_roles_is_refused() -> None:
    application = FastAPI()

    @application.get("/v1/both", dependencies=[Depends(READER)])
    async def both(_: AdminCaller) -> None:
        """Which of them?"""

    with pytest.raises(RouteWithoutAccess, match="2 kinds"):
        access_of_routes(application)


async def test_no_request_waits_for_a_thread(application: FastAPI) -> None:
    """A function that is not `async` is run in a thread, which has to wait for the interpreter whenever others compute."""
    threaded = {
        getattr(call, "__name__", repr(call))
        for route in iter_route_contexts(application.routes)
        if isinstance(route.original_route, APIRoute)
        for call in called(route.dependant)
        if not is_asynchronous(call)
    }
    assert threaded == set()


def called(dependant: Dependant) -> Iterator[Any]:
    """A route's function and all that it depends on."""
    yield dependant.call
    for below in dependant.dependencies:
        yield from called(below)


def is_asynchronous(call: Any) -> bool:
    function = call if inspect.isroutine(call) else call.__call__
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
