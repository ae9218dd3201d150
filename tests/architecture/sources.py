"""Our own Python files, parsed, for rules about how they are written."""

import ast
from functools import cache
from pathlib import Path

CATCH_ALL = {"Exception", "BaseException"}
ROOT = Path(__file__).resolve().parents[2]


def python_files(*folders: str) -> list[Path]:
    """Paths relative to the root of the project."""
    return sorted(path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(), filename=str(path))


def calls(path: Path, name: str) -> list[str]:
    """Where a file calls something of this name, as `path:line`."""
    return [
        f"{path}:{node.lineno}"
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call) and _called_name(node) == name
    ]


def strings(path: Path) -> list[tuple[int, str]]:
    """Every string constant of a file that is not a docstring, with its line."""
    tree = parse(path)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]


def swallowed_errors(path: Path) -> list[str]:
    """Where a file catches every error and does not raise it again, as `path:line`."""
    return [
        f"{path}:{node.lineno}"
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in CATCH_ALL))
        and not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
    ]


def imports(path: Path) -> set[str]:
    """The modules that a file imports, by full name."""
    found: set[str] = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def _called_name(node: ast.Call) -> str | None:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else None
