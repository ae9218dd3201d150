"""The documentation is complete: every operation has what a stranger needs to use it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from app.api.openai_errors import PATHS
from app.api.problems import MEDIA_TYPE
from app.main import create_app

DOCUMENT = create_app().openapi()
PUBLIC = {"/healthz", "/readyz"}


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


OPERATIONS = dict(operations())
every_operation = pytest.mark.parametrize("name", OPERATIONS)


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with its components, for a validator that follows references."""
    return {**schema, "components": DOCUMENT["components"]}


def examples_of(media: dict[str, Any]) -> list[Any]:
    """Examples of a body: beside its schema, or within the model that the schema names."""
    beside = [example["value"] for example in media.get("examples", {}).values()]
    if "example" in media:
        beside.append(media["example"])
    name = media["schema"].get("$ref", "").rpartition("/")[2]
    within = DOCUMENT["components"]["schemas"][name].get("examples", []) if name else []
    return beside + within


def media_type(path: str) -> str:
    """Of refusals."""
    return "application/json" if path.startswith(PATHS) else MEDIA_TYPE


def answers(operation: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    for status, answer in operation["responses"].items():
        yield int(status), answer


@every_operation
def test_it_is_described_and_grouped(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["summary"]
    assert operation["description"]
    assert len(operation["tags"]) == 1


@every_operation
def test_its_bodies_have_examples_that_fit_their_schemas(name: str) -> None:
    operation = OPERATIONS[name]
    bodies = list(operation.get("requestBody", {}).get("content", {}).items())
    for status, answer in answers(operation):
        if status < 300 and status != 204:
            assert answer.get("content"), f"{status} has no content"
            bodies += answer["content"].items()
    for media_type, media in bodies:
        found = examples_of(media)
        assert found, f"{media_type} has no example"
        if media_type == "application/json":
            for example in found:
                Draft202012Validator(resolved(media["schema"])).validate(example)


@every_operation
def test_its_refusals_are_problems_with_codes(name: str) -> None:
    operation = OPERATIONS[name]
    path = name.partition(" ")[2]
    refusals = {status: answer for status, answer in answers(operation) if status >= 400}
    for status, answer in refusals.items():
        assert set(answer["content"]) == {media_type(path)}, status
        content = answer["content"][media_type(path)]
        for code, example in content["examples"].items():
            if path.startswith(PATHS):
                assert example["value"]["error"]["code"] == code
            else:
                assert (example["value"]["code"], example["value"]["status"]) == (code, status)
            Draft202012Validator(resolved(content["schema"])).validate(example["value"])
    if path.startswith("/v1/admin/"):
        assert {401, 422, 500, 503} <= set(refusals)
        assert operation["security"] == [{"OperatorSecret": []}]
    elif path == "/metrics":
        assert {401, 500, 503} <= set(refusals)
        assert operation["security"] == [{"MetricsToken": []}]
    elif path not in PUBLIC:
        assert {401, 403, 400 if path.startswith(PATHS) else 422, 500, 503} <= set(refusals)
        assert operation["security"] == [{"ApiKey": []}]
    if "{" in path and not name.startswith("PUT /v1/admin/plans"):
        assert 404 in refusals


@every_operation
def test_what_the_group_refuses_is_told_beside_what_the_route_refuses(name: str) -> None:
    operation, kind = OPERATIONS[name], media_type(name.partition(" ")[2])
    if "403" in operation["responses"]:
        assert "tenant_suspended" in operation["responses"]["403"]["content"][kind]["examples"]
    if "422" in operation["responses"]:
        assert "validation_error" in operation["responses"]["422"]["content"][MEDIA_TYPE]["examples"]


def test_parameters_are_described() -> None:
    bare = [
        f"{name}: {parameter['name']}"
        for name, operation in OPERATIONS.items()
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query" and not parameter.get("description")
    ]
    assert bare == []


def test_operation_ids_are_different() -> None:
    ids = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(ids)) == len(ids)


def test_the_shape_that_is_never_sent_is_not_shown() -> None:
    assert "HTTPValidationError" not in str(DOCUMENT)


async def test_it_is_served_with_a_page_to_try_it(anonymous: httpx.AsyncClient) -> None:
    assert (await anonymous.get("/openapi.json")).json()["info"]["title"] == "Trellis"
    page = (await anonymous.get("/docs")).text
    assert "/static-offline-docs/swagger-ui-bundle.js" in page
    assert "//cdn" not in page
