"""Values of AGE's type `agtype`, read with apache-age-python. Importing this needs the extra `age`."""

import json
from typing import Any

from age.builder import Antlr4ResultHandler, ResultVisitor


class _Visitor(ResultVisitor):  # type: ignore[misc]
    """The library's own reading of texts strips every quote at their ends and leaves the escapes in."""

    def visitStringValue(self, ctx: Any) -> str:
        return str(json.loads(ctx.STRING().getText()))

    def visitPair(self, ctx: Any) -> tuple[str, Any]:
        return str(json.loads(ctx.STRING().getText())), ctx.agValue()


def read(value: str | None) -> Any:
    """A vertex, edge or path of the library's models, or the Python value; None for a missing one."""
    if value is None:
        return None
    handler = Antlr4ResultHandler(None)
    handler.visitor = _Visitor(None)
    return handler.parse(value)
