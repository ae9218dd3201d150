"""What FastAPI's documentation lacks: the schema of problems, and which query parameters each route knows."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from app.api.deps import Access, OperatorAccess
from app.api.idempotency import HEADER, READS_ONLY
from app.api.openai_errors import PATHS as OPENAI_PATHS
from app.api.problems import MEDIA_TYPE, BadRequest, Problem, RequestTimeout, public_problems
from app.domain.idempotency.errors import IdempotencyInProgress, IdempotencyKeyReused
from app.domain.secret_box import SecretUnreadable


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
                operation = schema["paths"][path][method.lower()]
                operation["x-required-role"] = asked.label
                if method == "POST" and isinstance(asked, Access) and not READS_ONLY.items() <= operation.items():
                    _add_idempotency(operation)
            for path in (path for path in schema["paths"] if path.startswith(OPENAI_PATHS)):
                for operation in schema["paths"][path].values():
                    # FastAPI adds it wherever something can be invalid; there it is a 400.
                    operation["responses"].pop("422", None)
            for operation in _operations_with_body(schema):
                operation["responses"].setdefault("400", public_problems(BadRequest)[400])
                operation["responses"].setdefault("408", public_problems(RequestTimeout)[408])
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign] # the way FastAPI documents for changing it


def _add_idempotency(operation: dict[str, Any]) -> None:
    """Every POST of a tenant that changes something takes the header, without declaring it (`app/api/idempotency.py`)."""
    operation.setdefault("parameters", []).append(
        {
            "name": HEADER,
            "in": "header",
            "required": False,
            "description": "A key of your own for this request. Sent again, it is answered as before and done once.",
            "schema": {"type": "string", "maxLength": 255},
        }
    )
    for status, refusal in public_problems(IdempotencyKeyReused, IdempotencyInProgress, SecretUnreadable).items():
        known = operation["responses"].setdefault(str(status), refusal)
        known["content"][MEDIA_TYPE]["examples"] |= refusal["content"][MEDIA_TYPE]["examples"]


def _operations_with_body(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for operations in schema["paths"].values():
        yield from (operation for operation in operations.values() if "requestBody" in operation)


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
