"""Requests made up from the OpenAPI document: none breaks the API, and every answer is as documented."""

import asyncio
import os
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.live import LiveStack

with warnings.catch_warnings():
    # What the library's own dependencies deprecate is not ours to mend.
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import CheckFunction, not_a_server_error
    from schemathesis.core.failures import FailureGroup
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

# Enough to try each rule of a schema once or twice; all operations together take less than a minute. `make fuzz` tries more,
# and others with another seed.
EXAMPLES = int(os.environ.get("TRELLIS_FUZZ", "12"))
SEED = os.environ.get("TRELLIS_FUZZ_SEED")
CHECKS: list[CheckFunction] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.mark.acceptance
@pytest.mark.filterwarnings("ignore")
def test_no_generated_request_breaks_the_api(live_stack: LiveStack) -> None:
    key = asyncio.run(live_stack.new_key())
    schema = schemathesis.openapi.from_url(f"{live_stack.api_url}/openapi.json")
    tried, wrong = 0, []
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr] # a schema that cannot be read fails here
        tried += 1
        try:
            try_operation(operation, {"Authorization": f"Bearer {key}"})
        except FailureGroup as failures:
            wrong += [f"{operation.label}: {failure}" for failure in failures.exceptions]
    assert tried > 30
    assert wrong == []


def try_operation(operation: Any, headers: dict[str, str]) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=SEED is None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def attempt(case: Any) -> None:
        # Waiting makes nothing truer here.
        if "wait" in (case.query or {}):
            case.query["wait"] = 0
        response = case.call(headers=headers)
        case.validate_response(response, checks=CHECKS)

    if SEED is not None:
        attempt = seed(int(SEED))(attempt)
    attempt()
