"""What Trellis finds that LightRAG does not, and the other way round, on the same tables with the same keywords."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.retrieval.contract import GRAPH_MODES
from bench.sidebyside.asker import TOP_K, Ask
from bench.sidebyside.askers import AskerProcess
from bench.sidebyside.ingest import say

SHOWN = 3


def compare(askers: Mapping[str, AskerProcess], asks: Sequence[Ask]) -> list[str]:
    """A table: of how many questions entities, relations and chunks are the same sets, by mode."""
    say(f"comparing what is found, {len(asks)} questions")
    lines = [
        f"### The same evidence? {len(asks)} questions",
        "",
        f"Questions with equal sets. LightRAG brings every relation of the entities it hits, Trellis the first {TOP_K}"
        " entities and relations of them, so that many are compared. Chunks are those whose passages Trellis then ranks.",
        "",
        "| mode | entities | relations | chunks | first differences |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for mode in GRAPH_MODES:
        stock = askers["stock"].round(mode, asks, 1, is_whole=True)["found"]
        ours = askers["trellis"].round(mode, asks, 1, is_whole=True)["found"]
        lines.append(_row(mode, asks, stock, ours))
    return [*lines, ""]


def _row(
    mode: str,
    asks: Sequence[Ask],
    stock: Sequence[dict[str, list[Any]]],
    ours: Sequence[dict[str, list[Any]]],
) -> str:
    equal = dict.fromkeys(("entities", "relations", "chunks"), 0)
    differences: list[str] = []
    for ask, theirs, found in zip(asks, stock, ours, strict=True):
        for kind in equal:
            want, have = _as_set(kind, theirs), _as_set(kind, found)
            equal[kind] += want == have
            if want != have:
                differences.append(f"{ask.query[:40]}…: {kind} +{len(have - want)} -{len(want - have)}")
    shown = "; ".join(differences[:SHOWN]).replace("|", " ")
    return f"| {mode} | {equal['entities']} | {equal['relations']} | {equal['chunks']} | {shown} |"


def _as_set(kind: str, found: dict[str, list[Any]]) -> set[Any]:
    if kind == "chunks":
        return set(found[kind])
    return {tuple(each) if kind == "relations" else each for each in found[kind][:TOP_K]}
