"""The report of the ingestion bench: one markdown text, printed and, where asked for, kept under docs/."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from bench.sidebyside.meters import Cost
from bench.sidebyside.rows import RowResult

SHOWN_TABLES = 14
SHOWN_STATEMENTS = 10
SHOWN_CHARS = 120


def report(results: Sequence[RowResult], names: Mapping[str, str]) -> str:
    """Medians over the rounds of each row, ratios first. The first line with the word is (b) over (a)."""
    rounds = {name: [each for each in results if each.name == name] for name in dict.fromkeys(r.name for r in results)}
    first = {name: found[0] for name, found in rounds.items()}
    lines = [*_ratios(rounds), "", *_table(rounds, names), "", *_notes(first)]
    lines += _growth(rounds)
    for name, result in first.items():
        lines += _details(name, result)
    return "\n".join(lines) + "\n"


def _ratios(rounds: Mapping[str, Sequence[RowResult]]) -> list[str]:
    speed = {name: median(each.per_minute for each in found) for name, found in rounds.items()}
    lines = []
    if "a" in speed:
        lines += [f"ratio: {speed['b'] / speed['a']:.2f}"] if "b" in speed else []
        lines += [f"(c) over (a): {speed['c'] / speed['a']:.2f}"] if "c" in speed else []
    return lines


def _table(rounds: Mapping[str, Sequence[RowResult]], names: Mapping[str, str]) -> list[str]:
    columns: list[tuple[str, Callable[[RowResult], float], str]] = [
        ("documents a minute", lambda each: each.per_minute, "{:.0f}"),
        ("seconds", lambda each: each.seconds, "{:.1f}"),
        ("client CPU ms a document", lambda each: each.client.cpu_seconds / each.documents * 1000, "{:.0f}"),
        ("of it workers", lambda each: _workers(each).cpu_seconds / each.documents * 1000, "{:.0f}"),
        ("server CPU ms a document", lambda each: each.server.cpu_seconds / each.documents * 1000, "{:.0f}"),
        ("statements a document", lambda each: each.statements.total / each.documents, "{:.0f}"),
        ("lease held ms a document", lambda each: each.stage_ms.get("graph.merge", 0), "{:.0f}"),
        ("peak memory MB, client", lambda each: each.client.peak_megabytes, "{:.0f}"),
        ("peak memory MB, workers", lambda each: _workers(each).peak_megabytes, "{:.0f}"),
        ("peak memory MB, server", lambda each: each.server.peak_megabytes, "{:.0f}"),
        ("bytes stored a byte of text", lambda each: sum(each.table_bytes.values()) / each.text_bytes, "{:.1f}"),
        ("model calls", lambda each: each.calls.total() - each.calls["embed"], "{:.0f}"),
        ("embedding calls", lambda each: each.calls["embed"], "{:.0f}"),
        ("most calls at once", lambda each: each.model["peak_concurrency"], "{:.0f}"),
    ]
    lines = ["| | " + " | ".join(f"({name}) {names[name]}" for name in rounds) + " |"]
    lines.append("| --- |" + " ---: |" * len(rounds))
    for title, value, form in columns:
        cells = [form.format(median(value(each) for each in found)) for found in rounds.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    for fact in ("chunks", "passages", "entities", "relations"):
        lines.append(f"| {fact} | " + " | ".join(found[0].facts.get(fact, "-") for found in rounds.values()) + " |")
    return lines


def _workers(result: RowResult) -> Cost:
    return result.workers or result.client


def _notes(first: Mapping[str, RowResult]) -> list[str]:
    size = next(iter(first.values()))
    return [
        f"{size.documents} documents, {size.text_bytes / size.documents / 1000:.1f} kB each on average. Client: the trees"
        " of the API and its workers (for LightRAG its one server process); server: the tree of Postgres. Statements are"
        " counted by pg_stat_statements; each row of an executemany is one. Memory is the sum of resident sizes, so pages"
        " that processes share count several times. A row's stub model takes 16 calls at once, chat and embedding together.",
        "",
    ]


def _growth(rounds: Mapping[str, Sequence[RowResult]]) -> list[str]:
    lines = []
    for name, found in rounds.items():
        if batches := found[0].batches:
            first, last = batches[0], batches[-1]
            lines.append(
                f"growth ({name}), documents {last.first}-{last.last} against {first.first}-{first.last}: "
                f"time x {last.seconds / first.seconds:.2f}, CPU x {last.cpu_seconds / first.cpu_seconds:.2f}"
            )
    return [*lines, ""] if lines else []


def _details(name: str, result: RowResult) -> list[str]:
    documents = result.documents
    lines = [f"### ({name})", "", "Statements a document by kind: "]
    kinds = [f"{kind} {calls / documents:.1f}" for kind, calls in result.statements.by_kind.most_common()]
    lines[-1] += ", ".join(kinds) + "."
    if result.stage_ms:
        stages = [f"{stage} {ms:.0f}" for stage, ms in result.stage_ms.items()]
        lines += ["", "Milliseconds a document by stage: " + ", ".join(stages) + "."]
    lines += ["", "| statement | times a document | server ms a document |", "| --- | ---: | ---: |"]
    shown = [*result.statements.slowest[:SHOWN_STATEMENTS], *result.statements.most_frequent[:SHOWN_STATEMENTS]]
    for text, calls, ms in dict.fromkeys(shown):
        lines.append(
            f"| `{text[:SHOWN_CHARS].replace('|', chr(92) + '|')}` | {calls / documents:.1f} | {ms / documents:.1f} |"
        )
    lines += ["", "| table | bytes a byte of text |", "| --- | ---: |"]
    for table, size in list(result.table_bytes.items())[:SHOWN_TABLES]:
        lines.append(f"| {table} | {size / result.text_bytes:.2f} |")
    return [*lines, ""]
