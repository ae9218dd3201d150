"""Renews what one process holds, claims and leases together: those of a tenant whose beats come at once share a transaction."""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause

from app.db.session import Database
from app.domain.ingestion.lease_repository import HELD_CLAIMS, HELD_LEASES
from app.domain.ingestion.states import Claim
from app.retrieval.contract import Lease

# How long the first beat of a tenant waits for the others.
GATHER_SECONDS = 0.02


@dataclass
class _Round:
    """The beats of one tenant that are sent together, and the names of those that still hold what they claim."""

    claims: list[Claim] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    held: "asyncio.Task[set[str]] | None" = None


class Heartbeats:
    """One a process; an owner's name is of one claim or lease only."""

    def __init__(self, database: Database, lease_seconds: float) -> None:
        self.lease_seconds = lease_seconds
        self._database = database
        self._rounds: dict[UUID, _Round] = {}

    async def claim(self, claim: Claim) -> bool:
        """Keep a claim alive; False if it was taken away. One that its owner has concluded is not lost, but over.

        Raises what the database raises.
        """
        gathering = self._round(claim.tenant_id)
        gathering.claims.append(claim)
        return await self._is_held(gathering, claim.owner)

    async def lease(self, lease: Lease) -> bool:
        """The same for the lease of a workspace."""
        gathering = self._round(lease.ref.tenant_id)
        gathering.leases.append(lease)
        return await self._is_held(gathering, lease.owner)

    def _round(self, tenant_id: UUID) -> _Round:
        found = self._rounds.get(tenant_id)
        if found is None:
            found = self._rounds[tenant_id] = _Round()
            # In a context of its own: it acts for whoever joins, not for the one who came first.
            found.held = asyncio.create_task(self._send(tenant_id, found), context=Context())
            # An error is told to those who wait; where nobody does any more it is nobody's.
            found.held.add_done_callback(lambda task: task.cancelled() or task.exception())
        return found

    async def _is_held(self, gathering: _Round, owner: str) -> bool:
        assert gathering.held is not None  # noqa: S101 - started with the round
        # Whoever is told to stop must not stop the beats of the others.
        return owner in await asyncio.shield(gathering.held)

    async def _send(self, tenant_id: UUID, gathering: _Round) -> set[str]:
        await asyncio.sleep(GATHER_SECONDS)
        del self._rounds[tenant_id]
        held: set[str] = set()
        async with self._database.tenant(tenant_id) as session:
            for statement, values in self._statements(gathering):
                held |= set(await session.scalars(statement, {**values, "tenant_id": tenant_id}))
        return held

    def _statements(self, gathering: _Round) -> Sequence[tuple[TextClause, dict[str, Any]]]:
        claims, leases = gathering.claims, gathering.leases
        found: list[tuple[TextClause, dict[str, Any]]] = []
        if claims:
            values: dict[str, Any] = {
                "versions": [claim.version_id for claim in claims],
                "engines": [claim.engine for claim in claims],
                "owners": [claim.owner for claim in claims],
                "seconds": self.lease_seconds,
            }
            found.append((HELD_CLAIMS, values))
        if leases:
            values = {
                "workspaces": [lease.ref.workspace_id for lease in leases],
                "owners": [lease.owner for lease in leases],
                "seconds": self.lease_seconds,
            }
            found.append((HELD_LEASES, values))
        return found
