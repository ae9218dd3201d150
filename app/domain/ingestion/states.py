"""The state machine of an index, per version and engine. Every transition is one guarded UPDATE in this module.

    queued ──claim──▶ running ──finish──▶ ready | partial   (keep_out: partial, and not in the graph)
      ▲ ▲               │ │ └────fail────▶ failed          (also: claim, when the attempts are used up)
      │ └─put_back──────┘ └────cancel────▶ cancelled       (also from queued)
      └──────retry─────── failed | partial | cancelled     (only when clean)

    clean ──begin_merge──▶ purging ──finish | mark_clean──▶ clean

`purging` says that the graph engine may hold something of a version that is not trusted. It is set before the engine
writes and outlives the attempt: the next attempt removes it first, and after a final failure a purge does.

A running state belongs to the owner of its lease, whose name stays there as the last to have worked on it: an attempt whose lease was taken over, cancelled or deleted finds no
row to change, gets `ClaimLost`, and its transaction rolls back. When to change a state is decided elsewhere.

Each change of a state is also a row of `index_transitions`, which the database itself writes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, TextClause, case, func, text, update

from app.db.models import Chunk, IndexState
from app.db.session import TenantSession
from app.domain.ingestion.transition_repository import CLAIM, FINISH, FINISHING, GIVE_UP, STEP
from app.errors import Conflict
from app.retrieval.contract import Engine

WAITING = "waiting_for_workspace"
RETRYABLE = ("failed", "partial", "cancelled")


class ClaimLost(Conflict):
    """The attempt is over: somebody else took its lease, cancelled it, or deleted the document."""

    code = "claim_lost"
    title = "The work was taken away"


@dataclass(frozen=True)
class Claim:
    """The right of one attempt to work on one version for one engine, as long as its lease is kept alive."""

    tenant_id: UUID
    workspace_id: UUID
    version_id: UUID
    engine: Engine
    owner: str
    attempt: int
    stage_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """How an attempt ended: the state it left, and whether the graph engine must be cleaned up after it."""

    state: str
    is_purging: bool


class IndexStates:
    """Transitions within the caller's transaction. Times are the database's own."""

    def __init__(self, session: TenantSession) -> None:
        self.session = session

    async def claim(
        self,
        version_id: UUID,
        engine: Engine,
        owner: str,
        *,
        lease_seconds: float,
        max_attempts: int,
        stage: str = "starting",
    ) -> Claim | Ended | None:
        """Take a queued state, or a running one whose lease ran out. None if there is nothing to take.

        `Ended` if this would have been one attempt too many: the state is `failed` then. The graph can be claimed only
        once the version's passages are there, that is after its lazy index.
        """
        values = {
            "tenant_id": self.session.tenant_id,
            "version_id": version_id,
            "engine": engine,
            "max_attempts": max_attempts,
        }
        taking = {"owner": owner, "lease_seconds": lease_seconds, "stage": stage}
        row = await self._row(CLAIM, values | taking)
        if row is not None:
            return Claim(
                self.session.tenant_id, row.workspace_id, version_id, engine, owner, row.attempts, row.stage_ms
            )
        return _ended(await self._row(GIVE_UP, values))

    async def progress(
        self,
        claim: Claim,
        *,
        stage: str | None = None,
        chunks: tuple[int, int] | None = None,
        stage_ms: Mapping[str, float] | None = None,
    ) -> None:
        """Say how far the attempt is; `chunks` is (done, total). Raises ClaimLost."""
        await self._step(claim, stage, None, chunks, stage_ms)

    async def begin_merge(
        self, claim: Claim, *, chunks: tuple[int, int] | None = None, stage_ms: Mapping[str, float] | None = None
    ) -> None:
        """Note, before the graph engine writes, that it may hold something untrusted from now on; the rest is as for
        `progress`. Raises ClaimLost."""
        await self._step(claim, "merging", "purging", chunks, stage_ms)

    async def finish(
        self,
        claim: Claim,
        state: str,
        *,
        error: tuple[str, str] | None = None,
        stage_ms: Mapping[str, float] | None = None,
    ) -> None:
        """running → ready, or partial with `error` (code, sentence). Raises ClaimLost."""
        values = finished(claim, state, error, stage_ms)
        if await self._row(FINISHING, values) is None:
            raise claim_lost()

    async def keep_out(self, claim: Claim, code: str, detail: str, *, may_be_in_graph: bool) -> Ended:
        """running → partial without an index to answer from. Raises ClaimLost."""
        purging = {"cleanliness": "purging"} if may_be_in_graph else {}
        row = await self._change_mine(claim, **_failed(code, detail) | {"state": "partial", "stage": "done"} | purging)
        return Ended("partial", row.cleanliness == "purging")

    async def fail(self, claim: Claim, code: str, detail: str) -> Ended:
        """running → failed. Raises ClaimLost."""
        row = await self._change_mine(claim, **_failed(code, detail))
        return Ended("failed", row.cleanliness == "purging")

    async def fail_dependent_graph(self, version_id: UUID, code: str, detail: str) -> None:
        """queued → failed for the graph of a version whose text will never be there."""
        await self._change((*_at(version_id, "graph"), IndexState.state == "queued"), **_failed(code, detail))

    async def put_back(self, claim: Claim, *, error: tuple[str, str] | None = None) -> None:
        """running → queued after an attempt that failed and may be repeated. Raises ClaimLost."""
        code, detail = error or (None, None)
        await self._change_mine(claim, **_queued(code, detail))

    async def hand_back(self, claim: Claim, *, stage: str = "queued") -> None:
        """running → queued for an attempt that did nothing wrong, so that it is not counted. Raises ClaimLost."""
        await self._change_mine(claim, **_queued(None, None) | {"attempts": IndexState.attempts - 1, "stage": stage})

    async def wake(self, version_id: UUID) -> bool:
        """Note that the job of a graph that waits for its workspace was sent; False if it does not wait (any more)."""
        waiting = (*_at(version_id, "graph"), IndexState.state == "queued", IndexState.stage == WAITING)
        return await self._change(waiting, stage="queued") is not None

    async def cancel(self, version_id: UUID, engine: Engine) -> bool:
        """queued or running → cancelled; whoever works on it loses its claim. False if it was in a final state."""
        row = await self._change(
            (*_at(version_id, engine), IndexState.state.in_(("queued", "running"))),
            state="cancelled",
            stage="cancelled",
            lease_owner=None,
            lease_expires_at=None,
            finished_at=func.clock_timestamp(),
        )
        return row is not None

    async def retry(self, version_id: UUID, engine: Engine) -> bool:
        """failed, partial or cancelled → queued with all attempts before it; False in any other state or while purging."""
        row = await self._change(
            (
                *_at(version_id, engine),
                IndexState.state.in_(RETRYABLE),
                IndexState.cleanliness == "clean",
            ),
            **_queued(None, None)
            | {
                "attempts": 0,
                "queued_at": func.clock_timestamp(),
                "started_at": None,
                "lease_owner": None,
                "stage_ms": {},
            },
        )
        if row is not None and engine == "graph":
            # What was extracted stays; what failed is asked for again.
            await self.session.execute(
                update(Chunk)
                .where(
                    Chunk.tenant_id == self.session.tenant_id,
                    Chunk.version_id == version_id,
                    Chunk.state != "extracted",
                )
                .values(state="pending", error_code=None, error_detail=None)
                .execution_options(synchronize_session=False)
            )
        return row is not None

    async def mark_clean(self, version_id: UUID, engine: Engine = "graph") -> bool:
        """purging → clean, after the engine was seen to hold nothing of the version; False while an attempt is open."""
        row = await self._change(
            (
                *_at(version_id, engine),
                IndexState.cleanliness == "purging",
                IndexState.state.not_in(("queued", "running")),
            ),
            cleanliness="clean",
        )
        return row is not None

    async def mark_sent(self, version_ids: list[UUID]) -> None:
        """Note that the jobs of these queued states were sent again, so that the next sweep does not repeat it.

        Whoever had chosen one of them and has not claimed it by now has died: it may be chosen again.
        """
        await self._change(
            (IndexState.version_id.in_(version_ids), IndexState.state == "queued"),
            stage=case((IndexState.stage == "starting", "queued"), else_=IndexState.stage),
        )

    async def _step(
        self,
        claim: Claim,
        stage: str | None,
        cleanliness: str | None,
        chunks: tuple[int, int] | None,
        stage_ms: Mapping[str, float] | None,
    ) -> None:
        done, total = chunks or (None, None)
        steps = {
            "stage": stage,
            "cleanliness": cleanliness,
            "done": done,
            "total": total,
            "stage_ms": _rounded(stage_ms),
        }
        if await self._row(STEP, _named(claim) | steps) is None:
            raise claim_lost()

    async def _change_mine(self, claim: Claim, **values: Any) -> Row[Any]:
        row = await self._change(_mine(claim), **values)
        if row is None:
            raise claim_lost()
        return row

    async def _change(self, guards: tuple[ColumnElement[bool], ...], **values: Any) -> Row[Any] | None:
        return await self._first(
            update(IndexState)
            .where(IndexState.tenant_id == self.session.tenant_id, *guards)
            .values(changed_at=func.clock_timestamp(), **values)
        )

    async def _first(self, statement: Any) -> Row[Any] | None:
        # The session's identity map is not kept in step: states are read back by queries, never by held objects.
        statement = statement.execution_options(synchronize_session=False).returning(
            IndexState.workspace_id, IndexState.state, IndexState.attempts, IndexState.cleanliness, IndexState.stage_ms
        )
        return await self._row(statement)

    async def _row(self, statement: Any, values: Mapping[str, Any] | None = None) -> Row[Any] | None:
        rows: list[Row[Any]] = list((await self.session.execute(statement, values)).all())
        return rows[0] if rows else None


def finishing(
    claim: Claim,
    state: str,
    *,
    error: tuple[str, str] | None = None,
    stage_ms: Mapping[str, float] | None = None,
    since_changed: str,
) -> TextClause:
    """The statement of `finish`; `since_changed` names a stage that took the time since the state was last changed.

    It touches no row where the claim is lost.
    """
    return text(FINISH).bindparams(**finished(claim, state, error, stage_ms, since_changed))


def claim_lost() -> ClaimLost:
    return ClaimLost("another worker has this version, or it was cancelled or deleted")


def _at(version_id: UUID, engine: Engine) -> tuple[ColumnElement[bool], ...]:
    return (IndexState.version_id == version_id, IndexState.engine == engine)


def _mine(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return (
        IndexState.tenant_id == claim.tenant_id,
        *_at(claim.version_id, claim.engine),
        IndexState.state == "running",
        IndexState.lease_owner == claim.owner,
    )


def _named(claim: Claim) -> dict[str, Any]:
    return {
        "tenant_id": claim.tenant_id,
        "version_id": claim.version_id,
        "engine": claim.engine,
        "owner": claim.owner,
    }


def finished(
    claim: Claim,
    state: str,
    error: tuple[str, str] | None,
    stage_ms: Mapping[str, float] | None,
    since_changed: str | None = None,
) -> dict[str, Any]:
    """The values of `FINISH`."""
    code, detail = error or (None, None)
    return {
        **_named(claim),
        "state": state,
        "code": code,
        "detail": detail,
        "stage_ms": _rounded(stage_ms),
        "since_changed": since_changed,
    }


def _rounded(stage_ms: Mapping[str, float] | None) -> str:
    return json.dumps({name: round(value, 1) for name, value in (stage_ms or {}).items()})


def _failed(code: str, detail: Any) -> dict[str, Any]:
    return {
        "state": "failed",
        "stage": "failed",
        "error_code": code,
        "error_detail": detail,
        "lease_expires_at": None,
        "finished_at": func.clock_timestamp(),
    }


def _queued(code: str | None, detail: str | None) -> dict[str, Any]:
    return {
        "state": "queued",
        "stage": "queued",
        "error_code": code,
        "error_detail": detail,
        "lease_expires_at": None,
        "finished_at": None,
    }


def _ended(row: Row[Any] | None) -> Ended | None:
    return None if row is None else Ended(row.state, row.cleanliness == "purging")
