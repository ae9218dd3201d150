"""What the report of the ingestion bench promises to whoever reads it by machine, and how statements are told apart."""

from collections import Counter

import pytest

from bench.sidebyside.ingest import ROWS
from bench.sidebyside.ingest_report import report
from bench.sidebyside.meters import Cost
from bench.sidebyside.rows import Batch, RowResult
from bench.sidebyside.statements import Counted, kind_of


def row(name: str, seconds: float, batches: tuple[Batch, ...] = ()) -> RowResult:
    return RowResult(
        name=name,
        documents=60,
        text_bytes=600_000,
        seconds=seconds,
        client=Cost(30, 300),
        server=Cost(10, 500),
        statements=Counted(Counter({"engine": 600}), (("SELECT 1", 60, 5.0),)),
        table_bytes={"lightrag_doc_chunks": 600_000},
        model={"calls": {"extract": 200, "embed": 100}, "peak_concurrency": 16},
        batches=batches,
    )


def first_line_with_ratio(text: str) -> str:
    return next(line for line in text.splitlines() if "ratio" in line)


def test_the_first_line_with_the_word_is_trellis_over_lightrag() -> None:
    text = report([row("a", 100), row("b", 40), row("c", 20)], ROWS)
    assert first_line_with_ratio(text) == "ratio: 2.50"


def test_medians_of_the_rounds_are_compared() -> None:
    rounds = [row("a", 100), row("b", 10), row("a", 100), row("b", 50), row("a", 100), row("b", 400)]
    assert first_line_with_ratio(report(rounds, ROWS)) == "ratio: 2.00"


def test_growth_compares_the_last_batch_with_the_first() -> None:
    batches = (Batch(1, 20, 10, 5), Batch(21, 40, 11, 5), Batch(181, 200, 13, 6))
    text = report([row("a", 100), row("b", 40, batches)], ROWS)
    assert "growth (b), documents 181-200 against 1-20: time x 1.30, CPU x 1.20" in text


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SELECT pg_advisory_unlock_all()", "pool resets"),
        ("BEGIN", "begin, commit, set"),
        ("SELECT set_config('app.tenant_id', $1, true)", "begin, commit, set"),
        ("SELECT id FROM lightrag_llm_cache WHERE workspace = $1", "extraction cache"),
        ("INSERT INTO LIGHTRAG_DOC_CHUNKS (workspace) VALUES ($1)", "engine"),
        ("UPDATE index_states SET stage = $1", "other"),
    ],
)
def test_statements_are_counted_by_kind(statement: str, kind: str) -> None:
    assert kind_of(statement) == kind
