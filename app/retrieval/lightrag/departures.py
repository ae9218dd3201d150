"""The names that go with a version: which of them nothing speaks of any more, and how people's records forget them.

Merges, edits, rejections and their history tell names that documents brought. A name stays while an entity bears it, while any other
document's answer gives it, or while it is people's own: made by hand, or part of an alias that was.
"""

from collections.abc import Collection, Sequence
from typing import Any

from app.retrieval.contract import GraphWriteFailed, Lease, Statement, WorkspaceRef
from app.retrieval.lightrag.alias_store import AliasStore
from app.retrieval.lightrag.departure_store import DepartureStore
from app.retrieval.lightrag.long_name_store import LongNames
from app.retrieval.lightrag.names import entity_key
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.storage.aliases import names_in
from app.retrieval.lightrag.storage.commit import write_fenced


class Departure:
    """Of one version from the workspace's graph. Runs inside the workspace's fence, under its lease."""

    def __init__(self, database: EngineDatabase, ref: WorkspaceRef, version_id: str) -> None:
        self._database = database
        self._store = DepartureStore(database, ref, version_id)
        self._aliases = AliasStore(database, ref)
        self._long_names = LongNames(database, ref)
        self._said: set[str] = set()
        self._gone: list[str] = []

    async def read(self) -> None:
        """What the version says, before it goes; nothing, where no record could hold a name."""
        if not await self._store.has_records():
            return
        said = await names_in(await self._store.answers()) | await self._store.parts()
        said |= set((await self._aliases.meanings(said)).values())
        said |= set(await self._aliases.leading_to(said))
        # Records hold the whole of what the engine has a short name for.
        self._said = said | set((await self._long_names.whole(said)).values())

    async def forgetting(self, rag: Any, touched: Collection[str]) -> list[Statement]:
        """The statements that forget its names where they stood alone; `touched` are the entities that it supported. To be
        asked for once the version is removed from `rag`'s storages, and run after the engine's own deletions."""
        if not self._said:
            return []
        spoken_of = sorted(self._said | set(touched))
        self._gone = await self._without_support(rag, spoken_of)
        passing_by = await self._aliases.passing_by([entity_key(name) for name in self._gone])
        return [*passing_by, self._store.forgetting(self._gone, spoken_of)]

    async def prove(self, lease: Lease) -> None:
        """Once they are forgotten no record may hold one of the names; one that came in meanwhile is forgotten now.

        Raises `GraphWriteFailed`.
        """
        if self._gone and await self._store.recorded(self._gone):
            await write_fenced(self._database, lease, [self._store.forgetting(self._gone)])
            if left := await self._store.recorded(self._gone):
                raise GraphWriteFailed(
                    "records still hold names of the version", code="removal_incomplete", left={"names": len(left)}
                )

    async def _without_support(self, rag: Any, names: Sequence[str]) -> list[str]:
        # In whatever spelling: an entity bears the one that came first.
        borne = set(map(entity_key, await rag.chunk_entity_relation_graph.get_nodes_batch(list(names))))
        left = await self._store.recorded([name for name in names if entity_key(name) not in borne])
        if not left:
            return []
        own = await self._store.own(left)
        return await self._said_nowhere_else([name for name in left if name not in own])

    async def _said_nowhere_else(self, names: list[str]) -> list[str]:
        after: str | None = ""
        while names and after is not None:
            answers, after = await self._store.other_answers(names, after)
            said = set(map(entity_key, await names_in(answers)))
            names = [name for name in names if entity_key(name) not in said]
        return names
