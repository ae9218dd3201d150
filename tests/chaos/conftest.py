"""One installation for the tests of this folder, whose servers may be stopped without disturbing anybody else's."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.chaos.stack import DIMENSION, ChaosStack, create_stack
from tests.chaos.user import User
from tests.cluster import RUN_FOLDER
from tests.fakes.stub_process import run_stub


@pytest.fixture(scope="session")
async def _installation(worker_number: int) -> AsyncIterator[ChaosStack]:
    folder = Path(os.environ[RUN_FOLDER]) / f"chaos-{worker_number}"
    with run_stub("--llm-ms", "250", "--embed-ms", "10", "--dim", str(DIMENSION)) as stub:
        # A test that holds the model up must not be overtaken by the client's patience.
        stack = await create_stack(folder, stub, {"TRELLIS_LEFTOVER_AGE_SECONDS": "10"}, timeout_seconds=60)
        yield stack
        await asyncio.to_thread(stack.stop)


@pytest.fixture
async def stack(_installation: ChaosStack) -> AsyncIterator[ChaosStack]:
    """Servers, API and beat run, and no worker: a test starts those it needs."""
    stack = _installation
    stack.stub.reset()
    stack.ensure_running()
    await asyncio.to_thread(stack.wait_for_api)
    yield stack
    stack.remove_workers()


@pytest.fixture
async def user(stack: ChaosStack) -> AsyncIterator[User]:
    """A tenant of its own for each test."""
    user = await User.create(stack, f"tenant {uuid4().hex[:12]}")
    yield user
    await user.close()
