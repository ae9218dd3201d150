"""The names that go with a version: which of them nothing speaks of any more, and how people's records forget them.

Merges, edits, rejections and their history tell names that documents brought. A name stays while an entity bears it, while any other
document's answer gives it, or while it is people's own: made by hand, or part of an alias that was.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from app.retrieval.contract import GraphWriteFailed, Lease, Statement, WorkspaceRef
from app.retrieval.lightrag.alias_store import AliasStore
from app.retrieval.lightrag.names import entity_key
from app.retrieval.lightrag.pool import EngineDatabase
from app.retrieval.lightrag.storage.aliases import names_of, parsed
from app.retrieval.lightrag.storage.commit import write_fenced

_HAS_RECORDS = "SELECT has_entity_records($1) AS found"
_RECORDED = "SELECT recorded_entity_names($1, $2) AS name"
_FORGET = "SELECT forget_entity_names($1, $2, $3, $4)"

# The answers about a version, and about text that it shares with others.
_ANSWERS = """
SELECT k.return_value AS answer FROM lightrag_llm_cache k
 WHERE k.workspace = $1 AND k.cache_type = 'extract'
   AND (k.chunk_id LIKE $2 || '-chunk-%' OR k.id IN (
         SELECT used.key FROM lightrag_doc_chunks c CROSS JOIN LATERAL jsonb_array_elements_text(c.llm_cache_list) used (key)
          WHERE c.workspace = $1 AND c.full_doc_id = $2))"""
_PARTS = (
    "SELECT DISTINCT target FROM entity_splits WHERE tenant_id = $1 AND workspace_id = $2 AND version_id = $3::uuid"
)
# Answers about other versions that may give one of these names; a model's spelling can differ by more than its case.
_OTHERS = """
SELECT return_value AS answer FROM lightrag_llm_cache
 WHERE workspace = $1 AND cache_type = 'extract' AND NOT coalesce(chunk_id LIKE $2 || '-chunk-%', false)
   AND normalize(return_value, NFKC) ILIKE ANY ($3::text[])"""
_OWN = """
SELECT w.name FROM unnest($3::text[], $4::bytea[]) AS w (name, key)
 WHERE EXISTS (SELECT 1 FROM entity_aliases a
                WHERE a.tenant_id = $1 AND a.workspace_id = $2 AND a.source = 'manual' AND w.key IN (a.key, a.target_key))
    OR EXISTS (SELECT 1 FROM entity_changes c CROSS JOIN LATERAL unnest(c.names) n
                WHERE c.tenant_id = $1 AND c.workspace_id = $2 AND c.kind = 'create_entity' AND lower(n) = lower(w.name))"""


class Departure:
    """Of one version from the workspace's graph. Runs inside the workspace's fence, under its lease."""

    def __init__(self, database: EngineDatabase, ref: WorkspaceRef, version_id: str) -> None:
        self._database = database
        self._ref = ref
        self._version_id = version_id
        self._aliases = AliasStore(database, ref)
        self._said: set[str] = set()
        self._gone: list[str] = []

    async def read(self) -> None:
        """What the version says, before it goes; nothing, where no record could hold a name."""
        if not (await self._database.fetch(_HAS_RECORDS, self._ref.workspace_id))[0]["found"]:
            return
        answers = await self._database.fetch(_ANSWERS, self._ref.engine_name, self._version_id)
        parts = await self._database.fetch(_PARTS, self._ref.tenant_id, self._ref.workspace_id, self._version_id)
        said = {*await _names_in(row["answer"] for row in answers), *(row["target"] for row in parts)}
        said |= set((await self._aliases.meanings(said)).values())
        self._said = said | set(await self._aliases.leading_to(said))

    async def forgetting(self, rag: Any, touched: Collection[str]) -> list[Statement]:
        """The statements that forget its names where they stood alone; `touched` are the entities that it supported. To be
        asked for once the version is removed from `rag`'s storages, and run after the engine's own deletions."""
        if not self._said:
            return []
        spoken_of = sorted(self._said | set(touched))
        self._gone = await self._without_support(rag, spoken_of)
        keys = [entity_key(name) for name in self._gone]
        forget = Statement(_FORGET, (self._ref.workspace_id, self._gone, keys, spoken_of))
        return [*await self._aliases.passing_by(keys), forget]

    async def prove(self, lease: Lease) -> None:
        """Once they are forgotten no record may hold one of the names; one that came in meanwhile is forgotten now.

        Raises `GraphWriteFailed`.
        """
        if self._gone and await self._recorded(self._gone):
            keys = [entity_key(name) for name in self._gone]
            forget = Statement(_FORGET, (self._ref.workspace_id, self._gone, keys, []))
            await write_fenced(self._database, lease, [forget])
            if left := await self._recorded(self._gone):
                raise GraphWriteFailed(
                    "records still hold names of the version", code="removal_incomplete", left={"names": len(left)}
                )

    async def _without_support(self, rag: Any, names: Sequence[str]) -> list[str]:
        # In whatever spelling: an entity bears the one that came first.
        borne = set(map(entity_key, await rag.chunk_entity_relation_graph.get_nodes_batch(list(names))))
        left = await self._recorded([name for name in names if entity_key(name) not in borne])
        if not left:
            return []
        scope = self._ref.tenant_id, self._ref.workspace_id
        own = await self._database.fetch(_OWN, *scope, left, [entity_key(name) for name in left])
        left = [name for name in left if name not in {row["name"] for row in own}]
        others = await self._database.fetch(
            _OTHERS, self._ref.engine_name, self._version_id, [_pattern(name) for name in left]
        )
        elsewhere = {entity_key(name) for name in await _names_in(row["answer"] for row in others)}
        return [name for name in left if entity_key(name) not in elsewhere]

    async def _recorded(self, names: Sequence[str]) -> list[str]:
        rows = await self._database.fetch(_RECORDED, self._ref.workspace_id, list(names))
        return [row["name"] for row in rows]


async def _names_in(answers: Iterable[str]) -> set[str]:
    return set(names_of([await parsed(answer) for answer in answers]))


def _pattern(name: str) -> str:
    """For ILIKE: the letters and digits of a name in their order, whatever a model has put between them."""
    plain = unicodedata.normalize("NFKC", name)
    return "".join(f"%{part}" for part in re.findall(r"[A-Za-z0-9]+|[^\W_]", plain)) + "%"
