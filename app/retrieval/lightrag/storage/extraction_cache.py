"""The model's raw answers, which outlive every unit: what was paid for once is never asked again.

Writes are collected for a moment and go out in one statement, outside any transaction. The prompt, 8 kB in each of
LightRAG's own rows, is not kept: the key is its digest, and nothing reads it.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import structlog
from lightrag.kg.postgres_impl import SQL_TEMPLATES, ClientManager, PGKVStorage
from lightrag.kg.shared_storage import get_data_init_lock

from app.retrieval.lightrag.pool import LOST_CONNECTION, engine_workspace
from app.retrieval.lightrag.scope import outliving
from app.retrieval.lightrag.storage.aliases import current_names
from app.retrieval.lightrag.storage.answer_keys import asking_chunk, plain_key
from app.retrieval.lightrag.storage.context import active_unit
from app.retrieval.lightrag.storage.guard import refuse_in_unit
from app.retrieval.lightrag.storage.loader import BatchLoader
from app.retrieval.lightrag.storage.sql import bulk_upsert, delete_by_id

Row = dict[str, Any]

TABLE = "LIGHTRAG_LLM_CACHE"
# How long an answer waits for others. A process that is killed meanwhile has to ask again.
LINGER_SECONDS = 0.02
# While the database is away the writer tries again, for another process may be asking for the same answers soon.
WRITE_AGAIN_SECONDS = 0.5

log = structlog.get_logger(__name__)


class ExtractionCache(PGKVStorage):  # type: ignore[misc]
    """Tasks that outlive their operation may still write here; they bring answers that are paid for."""

    db: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pending: dict[str, Row] = {}
        self._missed: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
        self._lock = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None
        self._reads: BatchLoader[str, Row] | None = None

    async def initialize(self) -> None:
        """Take the process's pool; no statement."""
        async with get_data_init_lock():
            if self.db is None:
                self.db = await ClientManager.get_client("PGVectorStorage")

    async def finalize(self) -> None:
        try:
            await self.flush()
        finally:
            if self._writer is not None:
                self._writer.cancel()
        await super().finalize()

    async def get_by_id(self, id: str) -> Row | None:
        """Who found nothing asks a model, and LightRAG reads once more before it writes what came: that second read needs no
        database, which may be away by then, and the answer is paid for."""
        missed = self._missed.setdefault(asyncio.current_task(), set())
        key = plain_key(id)
        if key in missed:
            missed.remove(key)
            if key not in self._pending:
                return None
        row = await self.get_by_id_strict(id)
        if row is None:
            missed.add(key)
        return row

    async def get_by_id_strict(self, id: str) -> Row | None:
        return (await self.get_by_ids([id]))[0]

    async def get_by_ids(self, ids: list[str]) -> list[Row | None]:
        """One row a key, in the order of the keys; concurrent calls share a statement.

        A key that names the chunk it is asked for (`answer_for`) gets its answer as that chunk's, under resolved names.
        """
        rows = await self._get([plain_key(key) for key in ids])
        asked = [(row, asking_chunk(key)) for key, row in zip(ids, rows, strict=True) if row and asking_chunk(key)]
        names = current_names()
        if names is not None and asked:
            answers = await names.rewrite([(chunk, row["return"]) for row, chunk in asked])
            for (row, _), answer in zip(asked, answers, strict=True):
                row["return"] = answer
        for row, chunk in asked:
            row["chunk_id"] = chunk
        return rows

    async def _get(self, ids: list[str]) -> list[Row | None]:
        if self._reads is None:
            self._reads = BatchLoader(self._read, on_load=lambda *_: None, on_error=lambda _: None)
        reads = self._reads
        # Taken before anything is awaited: a flush may empty what is pending meanwhile.
        pending = {key: self._pending[key] for key in ids if key in self._pending}
        await reads.load(key for key in ids if key not in pending)
        return [dict(row) if (row := pending.get(key) or reads.known.get(key)) else None for key in ids]

    async def filter_keys(self, keys: set[str]) -> set[str]:
        """The keys that have no row."""
        wanted = list(keys)
        return {key for key, row in zip(wanted, await self.get_by_ids(wanted), strict=True) if row is None}

    async def upsert(self, data: Mapping[str, Mapping[str, Any]]) -> None:
        """Collect answers; they are in the database within a moment, and in any case after `flush`."""
        moment = int(time.time())
        for key, value in data.items():
            self._pending[key] = {
                **value,
                "id": key,
                "original_prompt": "",
                "return_value": value["return"],
                "chunk_id": value.get("chunk_id"),
                "cache_type": value.get("cache_type", "extract"),
                "queryparam": value.get("queryparam"),
                "create_time": moment,
                "update_time": moment,
            }
        if self._pending and (self._writer is None or self._writer.done()):
            self._writer = asyncio.create_task(self._write_soon())
            self._writer.add_done_callback(_report)

    async def delete(self, ids: list[str]) -> None:
        """Forget answers: at once, or with the transaction of the running unit."""
        ids = [plain_key(key) for key in ids]
        for key in ids:
            self._pending.pop(key, None)
        unit = active_unit(self.workspace)
        if unit is not None:
            unit.forgotten_answers.update(ids)
            return
        with engine_workspace(self.workspace):
            for statement in delete_by_id(TABLE, self.workspace, ids):
                await self.db.fetch(statement.sql, *statement.values)

    async def drop(self) -> dict[str, str]:
        refuse_in_unit(self.workspace, "drop")
        self._pending.clear()
        return dict(await super().drop())

    async def is_empty(self) -> bool:
        return not self._pending and bool(await super().is_empty())

    async def index_done_callback(self) -> None:
        """Write what is collected; raises what the database raises."""
        await self.flush()

    async def flush(self) -> None:
        """Afterwards every answer collected so far is in the database; raises what the database raises."""
        async with self._lock:
            batch = dict(self._pending)
            if not batch:
                return
            rows = [_columns(batch[key]) for key in sorted(batch)]
            upsert = bulk_upsert(SQL_TEMPLATES["upsert_llm_response_cache"])
            # They are paid for, also where the operation that asked is over.
            with outliving(), engine_workspace(self.workspace):
                for statement in upsert.statements(self.workspace, rows):
                    await self.db.fetch(statement.sql, *statement.values)
            for key, row in batch.items():
                if self._pending.get(key) is row:
                    del self._pending[key]

    async def _write_soon(self) -> None:
        await asyncio.sleep(LINGER_SECONDS)
        while True:
            try:
                return await self.flush()
            except LOST_CONNECTION as error:
                log.warning("extraction_cache_write_failed", error=type(error).__name__)
            await asyncio.sleep(WRITE_AGAIN_SECONDS)

    async def _read(self, keys: list[str]) -> dict[str, Row]:
        # Whoever asks from now on gets a statement of its own: other processes write here too.
        self._reads = None
        rows = await super().get_by_ids(keys)
        return {key: row for key, row in zip(keys, rows, strict=True) if row is not None}


def _columns(row: Row) -> Row:
    return row | {"queryparam": json.dumps(row["queryparam"]) if row["queryparam"] else None}


def _report(writer: "asyncio.Task[None]") -> None:
    # The answers stay collected: the next write or flush tries again, and a flush tells its caller.
    if not writer.cancelled() and (error := writer.exception()) is not None:
        log.warning("extraction_cache_write_failed", error=type(error).__name__)
