"""Does the harm that a schedule names, and undoes it."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from app.devstack.processes import Child
from tests.chaos.schedule import Harm
from tests.chaos.stack import MODEL_TIMEOUT_SECONDS, ChaosStack

BUSY_WITHIN_SECONDS = 8
RUNNING = "SELECT count(*) FROM index_states WHERE state = 'running' AND lease_expires_at > now()"
STORED = "SELECT count(*) FROM lightrag_llm_cache WHERE cache_type = 'extract' AND workspace = ANY ($1)"
WORKSPACES = """
SELECT 'w_' || replace(w.id::text, '-', '') FROM workspaces w JOIN tenants t ON t.id = w.tenant_id
 WHERE t.name = 'disturbed'"""

MODEL_FAULTS: dict[str, dict[str, Any]] = {
    "model_429": {"status": 429, "headers": {"Retry-After": "1"}},
    "model_500": {"status": 500},
    "model_nonsense": {"kind": "extract", "body": "As you wish: there is nothing of note in this text."},
    # The client has given up long before the answer.
    "model_silence": {"status": 504, "delay_ms": MODEL_TIMEOUT_SECONDS * 3000},
}


class Harmer:
    """Server outages and dead workers are one after another; frozen workers and bad models go on beside them."""

    def __init__(self, stack: ChaosStack, say: Callable[[str], None]) -> None:
        self.stack = stack
        self.may_be_lost = 0
        self.interruptions = 0
        self._say = say
        self._frozen: set[int] = set()
        self._going_on: set[asyncio.Task[None]] = set()
        self._started_at = time.monotonic()

    def note(self, words: str) -> None:
        self._say(f"{time.monotonic() - self._started_at:7.2f} {words}")

    async def do(self, harm: Harm) -> None:
        await self._until_busy(harm)
        await asyncio.sleep(harm.after)
        self.note(f"{harm.fault} for {harm.seconds} s")
        if harm.fault in MODEL_FAULTS:
            self._go_on(self._bad_model(harm))
        elif harm.fault == "stop_worker":
            await self._stop_worker(harm)
        else:
            await getattr(self, f"_{harm.fault}")(harm)

    async def _until_busy(self, harm: Harm) -> None:
        """Faults are for work to go through: wait for some, unless all is done or nobody gets to it."""
        deadline = time.monotonic() + BUSY_WITHIN_SECONDS
        while time.monotonic() < deadline:
            is_busy = self._in_flight() if harm.while_asking else await self.stack.scalar(RUNNING)
            if is_busy:
                return
            await asyncio.sleep(0.05)

    async def heal(self) -> None:
        """Wait for what goes on beside, and see that everything runs."""
        while self._going_on:
            await asyncio.wait(self._going_on)
        for task in self._going_on:
            task.result()

    # --- workers ---

    async def _kill_worker(self, harm: Harm) -> None:
        victim = self._choose(harm)
        if victim is None:
            return
        self.stack.freeze(victim)
        await self.count_losses()
        self.stack.kill(victim)
        self.stack.start_worker()

    async def _stop_worker(self, harm: Harm) -> None:
        victim = self._choose(harm)
        if victim is None:
            return
        self.stack.freeze(victim)
        self._frozen.add(victim.process.pid)
        await self.count_losses()

        async def wake() -> None:
            await asyncio.sleep(harm.seconds)
            self.stack.thaw(victim)
            self._frozen.discard(victim.process.pid)
            self.note("the stopped worker goes on")

        self._go_on(wake())

    async def _kill_api(self, harm: Harm) -> None:
        self.stack.kill(self.stack.child("api"))
        await asyncio.sleep(harm.seconds)
        self.stack.processes.start_api()

    def _choose(self, harm: Harm) -> Child | None:
        awake = [child for child in self.stack.workers() if child.process.pid not in self._frozen]
        return awake[int(harm.choice * len(awake))] if awake else None

    async def count_losses(self) -> None:
        """Calls in flight, and answers that are not in the database yet: what may have to be asked for again."""
        stats = self.stack.stub.stats()
        async with self.stack.connection() as connection:
            names = [name for (name,) in await connection.fetch(WORKSPACES)]
            unstored = stats["distinct_extractions"] - await connection.fetchval(STORED, names)
        self.interruptions += 1
        # Rows of deleted and replaced documents are gone too, so what was answered long ago does not count.
        self.may_be_lost += stats["in_flight"].get("extract", 0) + min(max(unstored, 0), stats["extractions_lately"])

    def _in_flight(self) -> int:
        """Extractions that the model is being asked for."""
        return int(self.stack.stub.stats()["in_flight"].get("extract", 0))

    # --- servers ---

    async def _restart_postgres(self, harm: Harm) -> None:
        await asyncio.to_thread(self.stack.stop_postgres, "fast")
        await asyncio.sleep(harm.seconds)
        await asyncio.to_thread(self.stack.start_postgres)

    async def _crash_postgres(self, harm: Harm) -> None:
        await asyncio.to_thread(self.stack.stop_postgres, "immediate")
        await asyncio.sleep(harm.seconds)
        await asyncio.to_thread(self.stack.start_postgres)

    async def _cut_connections(self, harm: Harm) -> None:
        self.note(f"{await self.stack.cut_connections()} connections cut")

    async def _freeze_postgres(self, harm: Harm) -> None:
        self.stack.freeze_server("postgres")
        await asyncio.sleep(harm.seconds)
        self.stack.thaw_server("postgres")

    async def _freeze_redis(self, harm: Harm) -> None:
        self.stack.freeze_server("redis")
        await asyncio.sleep(harm.seconds)
        self.stack.thaw_server("redis")

    async def _flush_redis(self, harm: Harm) -> None:
        await self.stack.flush_redis()

    async def _restart_redis(self, harm: Harm) -> None:
        await asyncio.to_thread(self.stack.stop_redis)
        await asyncio.sleep(harm.seconds)
        await asyncio.to_thread(self.stack.start_redis)

    # --- the model ---

    async def _bad_model(self, harm: Harm) -> None:
        self.stack.stub.set_faults({**MODEL_FAULTS[harm.fault], "times": 10**6, "name": harm.fault})
        await asyncio.sleep(harm.seconds)
        self.stack.stub.clear_faults(harm.fault)
        self.note(f"{harm.fault} is over")

    def _go_on(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)
