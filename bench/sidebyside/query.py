"""`make bench-query`: how fast context is found, beside LightRAG's own context call on the same tables in the same run.

Both get the same keywords, so neither asks a chat model, and both embed through the same stub without a delay.
"""

import argparse
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from app.devstack.run_folders import close_run_folder, open_run_folder
from app.retrieval.contract import GRAPH_MODES
from app.text.keywords import extract_keywords
from bench.sidebyside.asker import Ask
from bench.sidebyside.askers import AskerProcess, Place, open_askers
from bench.sidebyside.corpus import DEFAULT_FOLDER, CorpusMissing, load_documents, load_questions
from bench.sidebyside.differences import compare
from bench.sidebyside.hub import grow_hub
from bench.sidebyside.ingest import PASSAGES_EACH, say
from bench.sidebyside.model import bench_model
from bench.sidebyside.product import DATABASE, Product
from bench.sidebyside.statements import StatementCounter

QUESTIONS = 100
SIZES = (100, 200)
CLIENTS = (1, 16)
# Of the questions, those that are timed, twice; the differences are looked for in all.
TIMED = 25
WARM_UP = 5
# Of the answer's timings, those of the engine's search.
ENGINE_STAGES = ("keywords", "retrieve", "trust", "rank")


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one system in one mode."""

    median: float
    p95: float

    @classmethod
    def of(cls, milliseconds: Sequence[float]) -> "Timing":
        ordered = sorted(milliseconds)
        return cls(median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))])

    def __str__(self) -> str:
        return f"{self.median:.1f} / {self.p95:.1f}"


def main() -> int:
    options = parse_options()
    try:
        documents = load_documents(options.data, max(options.sizes), PASSAGES_EACH)
        questions = load_questions(options.data, options.questions)
    except CorpusMissing as error:
        print(error, file=sys.stderr)
        return 2
    asks = [as_ask(question.text) for question in questions]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = open_run_folder("bench-runs")
    lines: list[str] = []
    try:
        with bench_model(llm_ms=0, embed_ms=0) as model, Product(folder / "q", model.base_url) as product:
            product.add_workspaces(1)
            counter = StatementCounter(product.servers.postgres, DATABASE)
            tenant = str(counter.fetch("SELECT id FROM tenants WHERE name = 'bench'")[0]["id"])
            place = Place(tenant, product.workspaces[0])
            done = 0
            for size in options.sizes:
                say(f"ingesting documents {done + 1}-{size}")
                product.ingest(documents[done:size])
                counter.fetch("ANALYZE")
                done = size
                with open_askers(product, place, folder / f"askers-{size}") as askers:
                    shown(lines, timings(f"{size} documents", askers, asks[: options.timed]))
                    shown(lines, overhead(product, askers["trellis"], asks[: options.timed]))
                    if size == max(options.sizes):
                        shown(lines, compare(askers, asks))
                        hub, degree = grow_hub(counter, place.engine_name)
                        shown(
                            lines,
                            timings(f"a hub of degree {degree}", askers, [Ask(hub, [hub], [hub])] * options.timed),
                        )
    finally:
        close_run_folder(folder)
    if options.write:
        options.write.write_text("\n".join(lines))
    return 0


def shown(report: list[str], lines: Sequence[str]) -> None:
    """Print a part of the report as soon as it is known."""
    print("\n".join(lines), flush=True)
    report += lines


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder with the evaluation sets")
    parser.add_argument(
        "--sizes", type=lambda text: [int(part) for part in text.split(",")], default=list(SIZES), help="documents"
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="for the differential test")
    parser.add_argument("--timed", type=int, default=TIMED, help="questions that are timed")
    parser.add_argument("--write", type=Path, help="where to write the report as markdown")
    return parser.parse_args()


def as_ask(question: str) -> Ask:
    keywords = extract_keywords(question)
    return Ask(question, list(keywords.high), list(keywords.low))


def timings(title: str, askers: Mapping[str, AskerProcess], asks: Sequence[Ask]) -> list[str]:
    """A table of every mode; each round is warmed up, and the two systems take turns."""
    say(f"asking: {title}")
    lines = [
        f"### {title}",
        "",
        "Milliseconds, median / 95th percentile.",
        "",
        "| mode | clients | LightRAG | Trellis | ratio of medians |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for mode in GRAPH_MODES:
        for clients in CLIENTS:
            both: dict[str, list[float]] = {"stock": [], "trellis": []}
            for asker in askers.values():
                asker.round(mode, asks[: max(4, clients)], clients)
            for _ in range(2):
                for kind, asker in askers.items():
                    both[kind] += asker.round(mode, asks, clients)["milliseconds"]
            stock, ours = Timing.of(both["stock"]), Timing.of(both["trellis"])
            lines.append(f"| {mode} | {clients} | {stock} | {ours} | {ours.median / stock.median:.2f} |")
    return [*lines, ""]


def overhead(product: Product, trellis: AskerProcess, asks: Sequence[Ask]) -> list[str]:
    """What HTTP, authentication and rendering add to the engine's search, one client in mode `mix`."""
    over_http: list[float] = []
    engine: list[float] = []
    for ask in [*(list(asks) * WARM_UP)[:WARM_UP], *asks]:
        body = {"query": ask.query, "mode": "mix", "keywords": {"high": ask.high, "low": ask.low}}
        started = time.perf_counter()
        answer = product.query(product.workspaces[0], body)
        over_http.append((time.perf_counter() - started) * 1000)
        engine.append(sum(answer["timings_ms"].get(stage, 0.0) for stage in ENGINE_STAGES))
    over_http, engine = over_http[WARM_UP:], engine[WARM_UP:]
    in_process = Timing.of(trellis.round("mix", asks, 1)["milliseconds"])
    whole, stages = Timing.of(over_http), Timing.of(engine)
    return [
        f"Over HTTP, `mix`, one client: {whole}; of that the engine's stages {stages}; the same in process {in_process}. "
        f"The API adds {median(a - b for a, b in zip(over_http, engine, strict=True)):.1f} ms at the median.",
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
