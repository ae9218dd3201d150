"""What Trellis finds that LightRAG does not, and the other way round, on the same tables with the same keywords."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.retrieval.contract import GRAPH_MODES
from bench.sidebyside.asker import Ask
from bench.sidebyside.askers import AskerProcess
from bench.sidebyside.ingest import say
from bench.sidebyside.statements import StatementCounter

# Passages found by their words alone are Trellis's addition to `mix`, and have no chunk of LightRAG's behind them.
GRAPH_LEG = "chunks"
SHOWN = 3
_CHUNKS = """
SELECT c.version_id, c.ordinal AS chunk, p.ordinal AS passage
  FROM chunks c JOIN passages p ON p.version_id = c.version_id AND p.ordinal BETWEEN c.first_passage AND c.last_passage
"""


def compare(counter: StatementCounter, askers: Mapping[str, AskerProcess], asks: Sequence[Ask]) -> list[str]:
    """A table: of how many questions entities, relations and chunks are the same sets, by mode."""
    say(f"comparing what is found, {len(asks)} questions")
    chunk_of = {
        (str(row["version_id"]), row["passage"]): f"{row['version_id']}-chunk-{row['chunk']:03d}"
        for row in counter.fetch(_CHUNKS)
    }
    lines = [
        f"### The same evidence? {len(asks)} questions",
        "",
        "Questions with equal sets; for chunks, those that the graph brings.",
        "",
        "| mode | entities | relations | chunks | first differences |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for mode in GRAPH_MODES:
        stock = askers["stock"].round(mode, asks, 1, is_whole=True)["found"]
        ours = askers["trellis"].round(mode, asks, 1, is_whole=True)["found"]
        lines.append(_row(mode, asks, stock, ours, chunk_of))
    return [*lines, ""]


def _row(
    mode: str,
    asks: Sequence[Ask],
    stock: Sequence[dict[str, list[Any]]],
    ours: Sequence[dict[str, list[Any]]],
    chunk_of: Mapping[tuple[str, int], str],
) -> str:
    equal = dict.fromkeys(("entities", "relations", "chunks"), 0)
    differences: list[str] = []
    for ask, theirs, found in zip(asks, stock, ours, strict=True):
        for kind in equal:
            want, have = _as_set(kind, theirs, chunk_of), _as_set(kind, found, chunk_of)
            equal[kind] += want == have
            if want != have:
                differences.append(f"{ask.query[:40]}…: {kind} +{len(have - want)} -{len(want - have)}")
    shown = "; ".join(differences[:SHOWN]).replace("|", " ")
    return f"| {mode} | {equal['entities']} | {equal['relations']} | {equal['chunks']} | {shown} |"


def _as_set(kind: str, found: dict[str, list[Any]], chunk_of: Mapping[tuple[str, int], str]) -> set[Any]:
    if kind == "relations":
        return {tuple(pair) for pair in found["relations"]}
    if kind == "chunks" and found["chunks"] and isinstance(found["chunks"][0], list):
        return {chunk_of[version, ordinal] for version, ordinal, legs in found["chunks"] if GRAPH_LEG in legs}
    return set(found[kind])
