"""Files and functions stay small enough to be read in one go."""

import ast
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, parse, python_files

MAX_FILE_LINES = 400
MAX_TEST_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_ROUTER_LINES = 200


def limit_of(path: Path) -> int:
    if path.is_relative_to(ROOT / "tests"):
        return MAX_TEST_FILE_LINES
    return MAX_ROUTER_LINES if path.name == "router.py" else MAX_FILE_LINES


@pytest.mark.parametrize("path", python_files("app", "workers", "tests", "demo", "deploy"), ids=str)
def test_file_is_short_enough(path: Path) -> None:
    assert len((ROOT / path).read_text().splitlines()) <= limit_of(ROOT / path)


def test_functions_are_short_enough() -> None:
    too_long = [
        f"{path}:{node.lineno} {node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for path in python_files("app", "workers", "tests", "demo", "deploy")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert too_long == []


def test_every_module_says_what_it_owns() -> None:
    silent = [
        str(path)
        for path in python_files("app", "workers", "demo", "deploy", "migrations/versions")
        if not ast.get_docstring(parse(path)) and (ROOT / path).read_text().strip()
    ]
    assert silent == []
