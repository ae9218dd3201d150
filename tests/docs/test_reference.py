"""The tables of the documentation say what the code says: settings, fields, modes, codes, routes, commands, events."""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import click
import pytest
import typer
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from app.api.openai_errors import PATHS as OPENAI_PATHS
from app.api.problems import FRAMEWORK_CODES, MEDIA_TYPE
from app.api.v1.documents.schemas import EngineRead
from app.api.v1.queries.schemas import Query, QueryAnswer
from app.cli.main import app as command_line
from app.domain.documents.records import FINAL_STATUSES, Status
from app.domain.ingestion.history_repository import REASONS
from app.domain.tenants.records import Role
from app.domain.workspaces.settings import WorkspaceSettings
from app.main import create_app
from app.metrics import declared
from app.parsing.formats import ACCEPTED
from app.retrieval.contract import MODES
from app.retrieval.routing import AUTO
from app.settings import Settings
from tests.architecture.sources import ROOT, parse, python_files
from tests.docs.pages import FENCE, column, guides, page, rows

OPENAPI = create_app().openapi()
CODE = re.compile(r"[a-z]+(_[a-z]+)+")
# Kinds that errors of ours are derived from, and the name of all parse failures together: none is ever sent.
ABSTRACT = {"not_found", "limit_exceeded", "parse_failed", "timed_out", "upstream_refused"}
LEVELS = {"debug", "info", "warning", "error"}
# Functions of ingestion that write a code into a row.
WRITES_CODE = {"_failed", "fail_pending_chunks", "_settle_failure", "keep_out"}


def shown_default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return value if isinstance(value, str) else json.dumps(value, default=str).strip('"')


def defaults(model: type[BaseModel]) -> dict[str, str]:
    return {name: shown_default(field) for name, field in model.model_fields.items()}


def test_every_setting_of_a_process_is_explained_with_its_default() -> None:
    told = {row["setting"]: row["default"] for row in rows(page("operations.md"), "setting", "default")}
    expected = {f"TRELLIS_{name.upper()}": value for name, value in defaults(Settings).items()}
    assert told == {name: "none" if value == "null" else value for name, value in expected.items()}


def test_every_setting_of_a_workspace_is_explained_with_its_default() -> None:
    told = {row["setting"]: row["default"] for row in rows(page("api.md"), "setting", "default")}
    assert told == defaults(WorkspaceSettings)


def test_every_field_of_a_query_and_its_answer_is_explained() -> None:
    told = {row["field"]: row["default"] for row in rows(page("api.md"), "field", "default")}
    assert told == defaults(Query)
    answer = set(QueryAnswer.model_fields)
    assert answer <= set(column(page("api.md"), "field"))


def test_every_mode_is_explained_with_its_engine() -> None:
    assert {row["mode"]: row["engine"] for row in rows(page("api.md"), "mode", "engine")} == dict(MODES) | {AUTO: "any"}


def test_every_status_and_role_is_explained() -> None:
    told = {row["status"]: row["final"] for row in rows(page("api.md"), "status", "final")}
    assert told == {name: "yes" if name in FINAL_STATUSES else "no" for name in get_args(Status)}
    assert column(page("api.md"), "role")[: len(Role)] == list(Role)
    states = get_args(EngineRead.model_fields["state"].annotation)
    assert [name for name in states if f"`{name}`" not in page("api.md")] == []


def test_every_format_is_listed_with_its_extensions() -> None:
    assert column(page("formats.md"), "extensions") == [name for each in ACCEPTED for name in each.extensions]


def test_every_metric_is_explained_with_its_type_and_labels() -> None:
    told = [
        (row["metric"], row["type"], tuple(re.findall(r"\w+", row["labels"])))
        for row in rows(page("operations.md"), "metric", "type", "labels")
    ]
    assert told == [(name, kind, tuple(labels)) for name, kind, labels in declared()]


def test_every_route_is_listed() -> None:
    routes = [f"{method.upper()} {path}" for path, methods in OPENAPI["paths"].items() for method in methods]
    assert sorted(row["route"] for row in rows(page("api.md"), "route")) == sorted(routes)


def test_every_route_is_listed_with_the_role_that_it_asks_for() -> None:
    asked = {
        f"{method.upper()} {path}": operation.get("x-required-role", "none")
        for path, methods in OPENAPI["paths"].items()
        for method, operation in methods.items()
    }
    assert {row["route"]: row["role"] for row in rows(page("api.md"), "route")} == asked


def problems_of_routes() -> dict[str, str]:
    found = {code: str(status) for status, code in FRAMEWORK_CODES.items()}
    for methods in OPENAPI["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                found |= dict.fromkeys(answer.get("content", {}).get(MEDIA_TYPE, {}).get("examples", ()), status)
    # OpenAI's interface has statuses of its own; what only it answers is listed with those.
    for path in (path for path in OPENAPI["paths"] if path.startswith(OPENAI_PATHS)):
        for operation in OPENAPI["paths"][path].values():
            for status, answer in operation["responses"].items():
                for code in answer.get("content", {}).get("application/json", {}).get("examples", ()):
                    found.setdefault(code, status)
    return found


def test_every_problem_is_listed_with_its_status() -> None:
    told = {row["code"]: row["status"] for row in rows(page("api.md"), "code", "status")}
    # A graph mode can meet these while it searches, which routes do not declare.
    assert told == problems_of_routes() | {"engine_unavailable": "503"}


def codes_of_source() -> set[str]:
    """Codes that classes have, that errors are raised with, and that ingestion writes into rows."""
    found: set[str] = set()
    for path in python_files("app", "workers"):
        for node in ast.walk(parse(path)):
            found |= set(_codes(node))
    return found - ABSTRACT


def _codes(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ClassDef(body=body):
            for line in body:
                if isinstance(line, ast.Assign) and getattr(line.targets[0], "id", None) == "code":
                    yield from _constants([line.value])
        case ast.Call(func=ast.Name(id="ParseFailed"), args=[code, *_]):
            yield from _constants([code])
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments, keywords=keywords):
            yield from _constants(word.value for word in keywords if word.arg in ("code", "error"))
            yield from _constants(arguments if name in WRITES_CODE else [])


def _constants(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and CODE.fullmatch(part.value):
                yield part.value


def test_every_error_code_is_explained_and_exists() -> None:
    told = {row["code"] for row in rows(guides(), "code")}
    assert told - codes_of_source() - set(FRAMEWORK_CODES.values()) == set()
    assert codes_of_source() - told == set()


def events() -> set[str]:
    """What our own loggers are told: an event's name comes first."""
    return {
        str(node.args[0].value)
        for path in python_files("app", "workers")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and getattr(node.func.value, "id", None) in ("logger", "log")
        and node.func.attr in LEVELS
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }


def test_every_reason_of_the_history_is_explained() -> None:
    assert [row["reason"] for row in rows(page("api.md"), "reason", "what happened")] == list(REASONS)


def test_every_event_of_the_log_is_explained() -> None:
    assert set(column(page("operations.md"), "event")) == events()


def commands(group: Any, name: str = "trellis") -> Iterator[tuple[str, click.Command]]:
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


COMMANDS = dict(commands(typer.main.get_command(command_line)))


def test_every_command_is_listed() -> None:
    assert sorted(row["command"] for row in rows(page("operations.md"), "command", "what it does")) == sorted(COMMANDS)


def shown_commands() -> list[str]:
    """Lines of code blocks that call trellis or make, those that go on put together."""
    text = guides() + (ROOT / "README.md").read_text()
    lines = [line for block in FENCE.finditer(text) for line in block["text"].replace("\\\n", " ").splitlines()]
    return [line.partition(" #")[0] for line in lines if re.search(r"(^|/| )(trellis|make) [a-z]", line)]


@pytest.mark.parametrize("line", shown_commands())
def test_a_shown_command_exists_with_its_options(line: str) -> None:
    if target := re.match(r"make (\S+)", line):
        assert re.search(rf"(?m)^{target[1]}:", (ROOT / "Makefile").read_text())
        return
    called = re.search(r"trellis (\w+)( \w+)?", line)
    assert called, line
    command = COMMANDS.get(called[0]) or COMMANDS[f"trellis {called[1]}"]
    known = {option for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r" (--[a-z-]+)", line[called.start() :])) <= known
