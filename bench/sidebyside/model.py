"""The stub model that every row asks: the same answers, the same delays, the same number of calls at once in total."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.fakes.stub_process import StubServer, run_stub

CALLS_AT_ONCE = 16
LLM_MS = 300
EMBED_MS = 20
DIMENSION = 384


@contextmanager
def bench_model(*, llm_ms: float = LLM_MS, embed_ms: float = EMBED_MS) -> Iterator[StubServer]:
    """A server of its own process; chat and embedding calls share the limit, whoever sends them."""
    with run_stub(
        "--llm-ms", str(llm_ms), "--embed-ms", str(embed_ms),
        "--max-concurrent", str(CALLS_AT_ONCE), "--dim", str(DIMENSION),
    ) as server:  # fmt: skip
        yield server
