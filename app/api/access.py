"""Reads from the routes themselves what each asks of its caller, and refuses an application with a route that says nothing."""

from collections.abc import Iterator, Mapping

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts

from app.api.deps import Access, OperatorAccess

# Below these a route answers nobody without a key or the operator's secret.
GUARDED = "/v1/"


class RouteWithoutAccess(RuntimeError):
    """A route does not declare, exactly once, what its caller must be."""


def access_of_routes(app: FastAPI) -> Mapping[tuple[str, str], Access | OperatorAccess]:
    """What each guarded (method, path) declares. Raises RouteWithoutAccess."""
    found: dict[tuple[str, str], Access | OperatorAccess] = {}
    for route in iter_route_contexts(app.routes):
        if not isinstance(route.original_route, APIRoute) or not str(route.path_format).startswith(GUARDED):
            continue
        declared = set(_declared(route.dependant))
        for method in route.methods or ():
            if len(declared) != 1:
                raise RouteWithoutAccess(
                    f"{method} {route.path_format} declares {len(declared)} kinds of access instead of one:"
                    " take the caller as ReaderCaller, EditorCaller, AdminCaller, …"
                )
            found[method, str(route.path_format)] = next(iter(declared))
    return found


def _declared(dependant: Dependant) -> Iterator[Access | OperatorAccess]:
    if isinstance(dependant.call, Access | OperatorAccess):
        yield dependant.call
    for below in dependant.dependencies:
        yield from _declared(below)
