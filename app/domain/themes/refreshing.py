"""Builds a workspace's map of themes when enough has changed, in the background and one at a time.

Read in one snapshot, worked out in a process of its own, written in one transaction. Whoever is killed on the way leaves a
claim that runs out, and the sweeper sends the job again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import structlog

from app.aside import Aside, RunAside
from app.db.base import TenantId, WorkspaceId
from app.db.session import Database, is_unavailable
from app.domain.themes.parameters import parameters_of
from app.jobs import RefreshThemes, enqueue
from app.retrieval.contract import WorkspaceRef
from app.retrieval.themes import claim_store, store
from app.retrieval.themes.graph import Mentions
from app.retrieval.themes.inheritance import Ancestry
from app.retrieval.themes.rows import BuiltMap, build_rows, name_rows
from app.settings import Settings

logger = structlog.stdlib.get_logger(__name__)

_EXTENSIONS = 3  # of a claim, in the time it holds
_KILLED_AT_MOST = 3  # builds of one corpus, each of which ended with its worker


class ThemesTookTooLong(Exception):
    """A build was ended by `themes_build_seconds`."""


OpenAside = Callable[[], AbstractAsyncContextManager[RunAside]]


@asynccontextmanager
async def own_process() -> AsyncIterator[RunAside]:
    """A process for one build: it may take a minute, and the one that reads documents works on one call after the other."""
    async with aclosing(Aside()) as aside:
        yield aside.run


@dataclass(frozen=True)
class _Corpus:
    """What a build starts from: the trusted passages of one moment, or a sample of them."""

    version: int
    passages: int
    is_sampled: bool
    mentions: Mentions
    versions: list[UUID]
    documents: list[UUID]
    trusted: list[UUID]  # all versions, sampled or not
    before: Ancestry | None


class ThemeRefreshing:
    """Does `RefreshThemes` jobs. Running one twice builds nothing twice: the second finds nothing to do, or the claim taken."""

    def __init__(self, database: Database, settings: Settings, open_aside: OpenAside = own_process) -> None:
        self._database = database
        self._open_aside = open_aside
        self._settings = settings
        self._parameters = parameters_of(settings)

    async def ask(self, tenant_id: UUID, workspace_id: UUID) -> None:
        """Have the themes built again, whatever has changed; a workspace that is gone or going is passed over."""
        async with self._database.tenant(tenant_id) as session:
            await claim_store.ask(session, workspace_id)
            enqueue(session, RefreshThemes(tenant_id, workspace_id))

    async def figures(self, tenant_id: UUID, workspace_id: UUID) -> dict[str, Any] | None:
        """How the map was built, and the share of passages that came or went since; None without a map."""
        async with self._database.snapshot(tenant_id) as session:
            state = await claim_store.find_state(session, workspace_id)
            if state is None or state.map_id is None:
                return None
            ref = WorkspaceRef(TenantId(tenant_id), WorkspaceId(workspace_id), state.number)
            found = await store.find_map(session, ref)
            if found is None:
                return None
            moved = await store.load_moved(session, ref, found.id)
        told = {name: value for name, value in asdict(found).items() if name not in ("id", "parameters")}
        return told | {"placed_since": moved.placed, "changed_share": round(moved.share(found), 4)}

    async def run(self, job: RefreshThemes) -> None:
        """Build the map if somebody asked for it, or if it is worth while. Raises what stops it; nothing is left then but the
        map before."""
        async with self._database.tenant(job.tenant_id) as session:
            state = await claim_store.find_state(session, job.workspace_id)
            if state is None:
                return
            ref = WorkspaceRef(TenantId(job.tenant_id), WorkspaceId(job.workspace_id), state.number)
            if not await self._is_wanted(session, ref, state):
                await claim_store.looked_at(session, ref, state.version, state.asked_at)
                return
            map_id = await claim_store.claim(session, ref, self._settings.lease_seconds)
        if map_id is not None:
            async with self._claimed(ref, map_id, state), _within(self._settings.themes_build_seconds):
                await self._build(ref, map_id, state.asked_at)

    async def _is_wanted(self, session: Any, ref: WorkspaceRef, state: Any) -> bool:
        """Not before the corpus changes or somebody asks, if a build of it failed or was killed again and again."""
        if self._parameters.max_passages == 0:
            return False
        if state.themes_tries >= _KILLED_AT_MOST:
            logger.error("themes_given_up", workspace_id=str(ref.workspace_id), tries=state.themes_tries)
            return False
        return bool(state.are_themes_asked) or await self._is_due(session, ref, state)

    async def _is_due(self, session: Any, ref: WorkspaceRef, state: Any) -> bool:
        if state.version <= state.themes_version:
            return False
        if state.map_id is None:
            return bool(state.passages >= self._parameters.min_passages)
        found = await store.find_map(session, ref)
        if found is None:
            return False
        moved = await store.load_moved(session, ref, found.id)
        return moved.share(found) >= self._settings.themes_refresh_share

    @asynccontextmanager
    async def _claimed(self, ref: WorkspaceRef, map_id: UUID, state: Any) -> AsyncIterator[None]:
        """Keep the claim while it is worked on, and give it back if that fails: for a later try if the worker stops or the
        database went away, else the same corpus would fail again."""
        seconds = self._settings.lease_seconds

        async def keep() -> None:
            while True:
                await asyncio.sleep(seconds / _EXTENSIONS)
                async with self._database.tenant(ref.tenant_id) as session:
                    await claim_store.extend(session, map_id, seconds)

        keeper = asyncio.create_task(keep())
        try:
            yield
        except BaseException as error:
            async with self._database.tenant(ref.tenant_id) as session:
                await claim_store.give_up(session, ref, map_id)
                if isinstance(error, Exception) and not is_unavailable(error):
                    await claim_store.looked_at(session, ref, state.version, state.asked_at)
            raise
        finally:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)

    async def _build(self, ref: WorkspaceRef, map_id: UUID, asked_at: datetime | None) -> None:
        started = time.monotonic()
        corpus = await self._read(ref)
        reason = "too_few_passages" if corpus.mentions.passages < self._parameters.min_passages else None
        async with self._open_aside() as run:
            if reason is not None:
                built = await run(build_rows, _nothing(), [], [], None, self._parameters)
            else:
                built = await run(
                    build_rows, corpus.mentions, corpus.versions, corpus.documents, corpus.before, self._parameters
                )
            async with self._database.snapshot(ref.tenant_id) as session:
                surfaces = await store.load_surfaces(session, ref, built.keys)
            named = await run(name_rows, built.unnamed, built.ids, surfaces)
        if reason is None and built.leaves == 0:
            reason = "too_few_concepts"
        facts = self._facts(corpus, built, reason) | {"milliseconds": (time.monotonic() - started) * 1000}
        if await self._write(ref, map_id, corpus, built, named, facts):
            # Of its own: a writer of documents may hold the row and wait for the transaction that put the map live.
            async with self._database.tenant(ref.tenant_id) as session:
                await claim_store.looked_at(session, ref, corpus.version, asked_at)
            counts = {
                name: facts[name] for name in ("levels", "leaves", "passages", "used_passages", "concepts", "edges")
            }
            logger.info("themes_built", workspace_id=str(ref.workspace_id), **counts, empty_reason=reason)

    async def _read(self, ref: WorkspaceRef) -> _Corpus:
        ids: list[int] = []
        versions: dict[UUID, int] = {}
        documents: dict[UUID, int] = {}
        of_version, of_document, lengths = [], [], []
        keys, flags = [], []
        async with self._database.snapshot(ref.tenant_id) as session:
            version, passages, trusted = await store.read_corpus(session, ref)
            share = min(1.0, self._parameters.max_passages / max(1, passages))
            async for row in store.stream_mentions(session, ref, share):
                ids.append(row.id)
                of_version.append(versions.setdefault(row.version_id, len(versions)))
                of_document.append(documents.setdefault(row.document_id, len(documents)))
                lengths.append(len(row.keys))
                keys.append(np.array(row.keys, dtype=np.int64))
                flags.append(np.array(row.flags, dtype=np.int64))
            found = await store.find_map(session, ref)
            before = await store.load_ancestry(session, ref, found.id) if found is not None else None
        mentions = _in_order(
            Mentions(
                np.array(ids, dtype=np.int64),
                np.array(of_version, dtype=np.int32),
                np.array(of_document, dtype=np.int32),
                np.cumsum([0, *lengths]),
                np.concatenate(keys) if keys else np.empty(0, np.int64),
                np.concatenate(flags) if flags else np.empty(0, np.int64),
            )
        )
        return _Corpus(version, passages, share < 1, mentions, list(versions), list(documents), trusted, before)

    def _facts(self, corpus: _Corpus, built: BuiltMap, reason: str | None) -> dict[str, Any]:
        return {
            "corpus_version": corpus.version,
            "levels": built.levels,
            "base_level": built.base_level,
            "leaves": built.leaves,
            "passages": corpus.passages,
            "used_passages": corpus.mentions.passages,
            "assigned": built.assigned,
            "is_sampled": corpus.is_sampled,
            "concepts": built.concept_count,
            "edges": built.edge_count,
            "empty_reason": reason,
            "parameters": self._parameters.as_json(),
        }

    async def _write(
        self, ref: WorkspaceRef, map_id: UUID, corpus: _Corpus, built: BuiltMap, named: list[str], facts: dict[str, Any]
    ) -> bool:
        """False if the claim was lost meanwhile, or the workspace is going: then nothing is written."""
        async with self._database.tenant(ref.tenant_id) as session:
            if not await claim_store.hold(session, map_id):
                return False
            await store.add_rows(session, ref, map_id, "themes", built.themes)
            await store.add_rows(session, ref, map_id, "concepts", [*built.concepts, *named])
            await store.add_rows(session, ref, map_id, "passages", built.passages)
            await claim_store.put_live(session, ref, map_id, facts, corpus.trusted)
        return True


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise ThemesTookTooLong from None
        raise


def _nothing() -> Mentions:
    empty, small = np.empty(0, np.int64), np.empty(0, np.int32)
    return Mentions(empty, small, small, np.zeros(1, np.int64), empty, empty)


def _in_order(mentions: Mentions) -> Mentions:
    """By passage id, so that the same corpus gives the same map however Postgres reads it."""
    order = np.argsort(mentions.passage_ids, kind="stable")
    lengths = np.diff(mentions.offsets)[order]
    offsets = np.r_[0, np.cumsum(lengths)]
    places = np.repeat(mentions.offsets[:-1][order] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return Mentions(
        mentions.passage_ids[order],
        mentions.versions[order],
        mentions.documents[order],
        offsets,
        mentions.keys[places],
        mentions.flags[places],
    )
