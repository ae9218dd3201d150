"""The random run from the command line: `make chaos SEED=7 DOCUMENTS=200 WORKSPACES=10 WORKERS=3`."""

import argparse
import asyncio
import random
import sys

from app.devstack.processes import ProcessFailed
from app.devstack.run_folders import close_run_folder, open_run_folder
from tests.chaos.run import Failed, Size, run_chaos
from tests.chaos.stack import DIMENSION, create_stack
from tests.chaos.user import Surprised
from tests.fakes.stub_process import run_stub

DOCUMENTS_A_FAULT = 2
LEAST_FAULTS = 15


def main() -> int:
    """0 if everything held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--documents", type=int, default=24)
    parser.add_argument("--workspaces", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--faults", type=int, help=f"else one for {DOCUMENTS_A_FAULT} documents")
    parser.add_argument("--keep", action="store_true", help="leave the folder with logs, database and originals")
    wanted = parser.parse_args()
    faults = wanted.faults or max(LEAST_FAULTS, wanted.documents // DOCUMENTS_A_FAULT)
    size = Size(wanted.documents, wanted.workspaces, wanted.workers, faults)
    say(f"SEED={wanted.seed} {size}")
    return asyncio.run(_run(wanted.seed, size, keep=wanted.keep))


def say(words: str) -> None:
    """At once, for whoever waits for the end of a run."""
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


async def _run(seed: int, size: Size, *, keep: bool) -> int:
    folder = open_run_folder("chaos")
    try:
        with run_stub("--llm-ms", "250", "--embed-ms", "20", "--dim", str(DIMENSION)) as stub:
            stack = await create_stack(folder, stub, max_concurrency=4)
            try:
                await run_chaos(stack, seed, size, say)
            finally:
                await asyncio.to_thread(stack.stop)
    except (Failed, Surprised, ProcessFailed) as failure:
        say(f"FAILED with SEED={seed}:\n{failure}")
        return 1
    finally:
        if keep:
            say(f"kept: {folder}")
        else:
            close_run_folder(folder)
    say(f"passed with SEED={seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
