"""Names that are too long for the engine's tables: the engine has a beginning and a digest, and people see the whole.

A whole name is kept before the engine can keep anything under the short one, and goes when nothing is called so any more.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from lightrag.utils import normalize_entity_name

from app.retrieval.contract import EngineWorkspace, Statement, WorkspaceRef
from app.retrieval.lightrag.names import shorten
from app.retrieval.lightrag.pool import inside
from app.retrieval.lightrag.reads import Reads

T = TypeVar("T")
P = ParamSpec("P")

_KEEP = """
INSERT INTO entity_names (tenant_id, workspace_id, name, whole)
SELECT $1, $2, u.name, u.whole FROM unnest($3::text[], $4::text[]) u (name, whole) ON CONFLICT DO NOTHING"""

_WHOLE = "SELECT name, whole FROM entity_names WHERE tenant_id = $1 AND workspace_id = $2 AND name = ANY ($3)"

_SAID_IN = """
SELECT n.name FROM entity_names n
 WHERE n.tenant_id = $1 AND n.workspace_id = $2 AND EXISTS (
   SELECT 1 FROM lightrag_llm_cache k
    WHERE k.workspace = $3 AND k.chunk_id LIKE $4 || '-chunk-%' AND strpos(k.return_value, n.name) > 0)"""

# Runs after what the engine and the aliases forget. An answer that is still there may bring the name back.
_FORGET = """
DELETE FROM entity_names n
 WHERE n.tenant_id = $1 AND n.workspace_id = $2 AND n.name = ANY ($3)
   AND NOT EXISTS (SELECT 1 FROM lightrag_entity_chunks t WHERE t.workspace = $4 AND t.id = n.name)
   AND NOT EXISTS (SELECT 1 FROM entity_aliases a WHERE a.tenant_id = $1 AND a.workspace_id = $2
                      AND n.name IN (a.alias, a.target))
   AND NOT EXISTS (SELECT 1 FROM lightrag_llm_cache k WHERE k.workspace = $4 AND strpos(k.return_value, n.name) > 0)"""
_CLEAR = "DELETE FROM entity_names WHERE tenant_id = $1 AND workspace_id = $2"

# How `shorten` ends what it makes, which is never much shorter than the limit.
_ENDING = re.compile(r"~[0-9a-f]{10}$")
_LEAST_CHARS = 100


def may_be_short(name: str) -> bool:
    """Whether the name may stand for a longer one."""
    return len(name) > _LEAST_CHARS and _ENDING.search(name) is not None


class LongNames:
    """The long names of one workspace."""

    def __init__(self, database: Reads, ref: WorkspaceRef) -> None:
        self._database = database
        self._ref = ref

    async def whole(self, names: Iterable[str]) -> dict[str, str]:
        """The whole names, by the short ones among these."""
        short = [name for name in dict.fromkeys(names) if may_be_short(name)]
        if not short:
            return {}
        with inside(self._ref):
            rows = await self._database.fetch(_WHOLE, *self._scope, short)
        return {row["name"]: row["whole"] for row in rows}

    async def shown(self, found: T) -> T:
        """`found`, made of dataclasses, tuples, lists and dicts, with whole names in place of short ones."""
        whole = await self.whole(_texts(found))
        return cast(T, _replaced(found, whole)) if whole else found

    def keeping(self, names: Iterable[str]) -> list[Statement]:
        """Statements that keep those of these names, as people or models say them, that the engine cannot."""
        said = [str(normalize_entity_name(name)) for name in names]
        long = {shorten(name): name for name in said if shorten(name) != name}
        return [Statement(_KEEP, (*self._scope, list(long), list(long.values())))] if long else []

    async def keep(self, long: Mapping[str, str]) -> None:
        """At once: whole names by short ones."""
        with inside(self._ref):
            await self._database.fetch(_KEEP, *self._scope, list(long), list(long.values()))

    async def said_in(self, version_id: str) -> list[str]:
        """Short names that the answers about a version's chunks hold."""
        rows = await self._database.fetch(_SAID_IN, *self._scope, self._ref.engine_name, version_id)
        return [row["name"] for row in rows]

    def forgetting(self, names: Iterable[str]) -> list[Statement]:
        """Statements that forget those of these names by which nothing goes any more."""
        short = sorted({name for name in names if may_be_short(name)})
        return [Statement(_FORGET, (*self._scope, short, self._ref.engine_name))] if short else []

    def clearing(self) -> Statement:
        return Statement(_CLEAR, self._scope)

    @property
    def _scope(self) -> tuple[object, object]:
        return self._ref.tenant_id, self._ref.workspace_id


class _Operations(Protocol):
    _database: Any


S = TypeVar("S", bound=_Operations)


def shown_whole(
    method: Callable[Concatenate[S, EngineWorkspace, P], Awaitable[T]],
) -> Callable[Concatenate[S, EngineWorkspace, P], Coroutine[Any, Any, T]]:
    """For operations on a workspace whose results people see."""

    @wraps(method)
    async def wrapped(self: S, workspace: EngineWorkspace, /, *arguments: P.args, **options: P.kwargs) -> T:
        found = await method(self, workspace, *arguments, **options)
        return await LongNames(self._database, workspace.ref).shown(found)

    return wrapped


def _texts(found: object) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif isinstance(found, Mapping):
        for value in found.values():
            yield from _texts(value)
    elif isinstance(found, tuple | list):
        for value in found:
            yield from _texts(value)
    elif is_dataclass(found):
        for each in fields(found):
            yield from _texts(getattr(found, each.name))


def _replaced(found: Any, whole: Mapping[str, str]) -> Any:
    if isinstance(found, str):
        # Texts that nobody wrote say the name too.
        for short, name in whole.items():
            found = found.replace(short, name)
        return found
    if isinstance(found, Mapping):
        return {key: _replaced(value, whole) for key, value in found.items()}
    if isinstance(found, tuple | list):
        return type(found)(_replaced(value, whole) for value in found)
    if is_dataclass(found) and not isinstance(found, type):
        return replace(found, **{each.name: _replaced(getattr(found, each.name), whole) for each in fields(found)})
    return found
