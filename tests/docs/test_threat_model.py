"""Each line of the threat model names a test that is there."""

import ast

import pytest

from tests.architecture.sources import ROOT
from tests.docs.pages import column, page

NAMED = column(page("threat-model.md"), "test")


def test_every_line_names_a_test() -> None:
    assert len(NAMED) > 30
    assert [name for name in NAMED if "::" not in name] == []


@pytest.mark.parametrize("name", NAMED)
def test_the_named_test_exists(name: str) -> None:
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert function in {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
