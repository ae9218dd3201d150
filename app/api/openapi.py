"""What FastAPI's documentation lacks: the schema of problems, and which query parameters each route knows."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from app.api.deps import Access, OperatorAccess
from app.api.problems import Problem


def install_openapi(app: FastAPI, access: Mapping[tuple[str, str], Access | OperatorAccess]) -> None:
    """`access` is what each guarded (method, path) asks of its caller."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes,
                tags=app.openapi_tags,
            )  # fmt: skip
            schemas = schema["components"]["schemas"]
            schemas["Problem"] = Problem.model_json_schema()
            # FastAPI's own shape of validation errors is never sent.
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            _restore_examples(schemas)
            for (method, path), asked in access.items():
                schema["paths"][path][method.lower()]["x-required-role"] = asked.label
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign] # the way FastAPI documents for changing it


def _restore_examples(schemas: dict[str, Any]) -> None:
    """FastAPI drops every null of the document, also from examples, where a required field may be null."""
    waiting = list(BaseModel.__subclasses__())
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        extra = model.model_config.get("json_schema_extra")
        if model.__module__.startswith("app.api.") and isinstance(extra, dict) and model.__name__ in schemas:
            schemas[model.__name__] |= extra


def query_names(app: FastAPI) -> Mapping[tuple[str, str], frozenset[str]]:
    """The names of the query parameters of each (method, path), read from the documentation."""
    return {
        (method.upper(), path): frozenset(
            parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"
        )
        for path, operations in app.openapi()["paths"].items()
        for method, operation in operations.items()
    }
