"""`make bench-ingest`: how fast documents become queryable, beside LightRAG's own server in the same run.

Rows run one after the other, each on a Postgres of its own and all against one stub model, so only their ratios mean
something: the machine's own speed drifts between runs.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from app.devstack.run_folders import close_run_folder, open_run_folder
from bench.sidebyside.corpus import DEFAULT_FOLDER, CorpusMissing, Document, load_documents
from bench.sidebyside.ingest_report import report
from bench.sidebyside.meters import Group, measured
from bench.sidebyside.model import bench_model
from bench.sidebyside.peer import DATABASE as PEER_DATABASE
from bench.sidebyside.peer import PeerServer, install_peer
from bench.sidebyside.product import DATABASE, Product
from bench.sidebyside.rows import WARM_UP, Batch, RowResult, System
from bench.sidebyside.statements import StatementCounter
from tests.fakes.stub_process import StubServer

DOCUMENTS = 60
PASSAGES_EACH = 30
GROWN_DOCUMENTS, BATCH = 200, 20
ROWS = {
    "a": "LightRAG's server",
    "b": "Trellis, 1 worker, 1 workspace",
    "c": "Trellis, 2 workers, 8 workspaces",
}
STAGES = """
SELECT engine || '.' || key AS stage, avg(value::float) AS ms
  FROM index_states, jsonb_each_text(stage_ms) WHERE state = 'ready' GROUP BY 1
UNION ALL
SELECT engine || '.queued to done', avg(extract(epoch FROM finished_at - queued_at)) * 1000
  FROM index_states WHERE state = 'ready' GROUP BY engine
UNION ALL
SELECT engine || '.started to done', avg(extract(epoch FROM finished_at - started_at)) * 1000
  FROM index_states WHERE state = 'ready' GROUP BY engine
ORDER BY 1 DESC
"""


def say(message: str) -> None:
    print(f"[bench] {message}", flush=True)


def main() -> int:
    options = parse_options()
    grow = options.grow
    count = GROWN_DOCUMENTS if grow else options.documents
    try:
        documents = load_documents(options.data, count, PASSAGES_EACH)
    except CorpusMissing as error:
        print(error, file=sys.stderr)
        return 2
    # A plain kill would leave the servers running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = open_run_folder("bench-runs")
    started = time.monotonic()
    try:
        results = [
            result
            for number in range(options.rounds)
            for name in options.rows
            for result in [run(name, documents, folder / f"{name}{number}", grow=grow)]
        ]
        text = report(results, ROWS)
    finally:
        close_run_folder(folder)
    print(text)
    say(f"the whole run took {time.monotonic() - started:.0f} s")
    if options.write:
        options.write.write_text(text)
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder with the evaluation sets")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=list(ROWS), help="a, b, c or some of them")
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="how many, unless --grow")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each row, in turn; medians are printed")
    parser.add_argument(
        "--grow", action="store_true", help=f"the cost from the {BATCH}th to the {GROWN_DOCUMENTS}th document"
    )
    parser.add_argument("--write", type=Path, help="where to write the report as markdown")
    return parser.parse_args()


def run(name: str, documents: Sequence[Document], folder: Path, *, grow: bool) -> RowResult:
    with bench_model() as model:
        if name == "a":
            return _run_peer(documents, folder, model, grow=grow)
        workers, workspaces = (1, 1) if name == "b" else (2, 8)
        return _run_product(name, documents, folder, model, workers, workspaces, grow=grow)


def _run_peer(documents: Sequence[Document], folder: Path, model: StubServer, *, grow: bool) -> RowResult:
    environment = install_peer(say)
    say(f"a: starting {ROWS['a']}")
    with PeerServer(environment, folder, model.base_url) as peer:
        peer.ingest([WARM_UP])
        counter = StatementCounter(peer.postgres, PEER_DATABASE)
        groups = {"client": Group([peer.process_id]), "server": Group([peer.postgres_id])}
        result = _measure("a", peer, documents, groups, counter, model, grow=grow)
        chunks = counter.fetch("SELECT count(*) AS n FROM lightrag_doc_chunks")[0]["n"] - 1
        result.facts = _graph_facts(counter) | {"chunks": str(chunks)}
        return result


def _run_product(
    name: str,
    documents: Sequence[Document],
    folder: Path,
    model: StubServer,
    workers: int,
    workspaces: int,
    *,
    grow: bool,
) -> RowResult:
    say(f"{name}: starting {ROWS[name]}")
    with Product(folder, model.base_url, workers=workers) as product:
        # Until every worker has opened its engine once.
        product.add_workspaces(workers)
        product.ingest([Document(f"{number}-{WARM_UP.name}", f"{WARM_UP.text} {number}.") for number in range(workers)])
        product.add_workspaces(workspaces)
        counter = StatementCounter(product.servers.postgres, DATABASE)
        groups = {
            "client": Group([product.api_id, *product.worker_ids]),
            "workers": Group(product.worker_ids),
            "server": Group([product.postgres_id]),
        }
        result = _measure(name, product, documents, groups, counter, model, grow=grow)
        result.stage_ms = {row["stage"]: float(row["ms"]) for row in counter.fetch(STAGES)}
        result.facts = _graph_facts(counter) | {
            "chunks": str(counter.fetch("SELECT count(*) AS n FROM chunks")[0]["n"] - workers),
            "passages": str(counter.fetch("SELECT count(*) AS n FROM passages")[0]["n"] - workers),
        }
        return result


def _measure(
    name: str,
    system: System,
    documents: Sequence[Document],
    groups: dict[str, Group],
    counter: StatementCounter,
    model: StubServer,
    *,
    grow: bool,
) -> RowResult:
    say(f"{name}: {len(documents)} documents")
    model.reset()
    counter.reset()
    batches: list[Batch] = []
    with measured(groups) as costs:
        started = time.monotonic()
        if grow:
            batches = _in_batches(system, documents, groups)
        else:
            system.ingest(documents)
        seconds = time.monotonic() - started
    statements = counter.count()
    say(f"{name}: {seconds:.1f} s")
    return RowResult(
        name=name,
        documents=len(documents),
        text_bytes=sum(document.size for document in documents),
        seconds=seconds,
        client=costs["client"],
        server=costs["server"],
        statements=statements,
        table_bytes=counter.table_bytes(),
        model=model.stats(),
        workers=costs.get("workers", costs["client"]),
        batches=batches,
    )


def _in_batches(system: System, documents: Sequence[Document], groups: dict[str, Group]) -> list[Batch]:
    batches = []
    for start in range(0, len(documents), BATCH):
        before, started = _spent(groups), time.monotonic()
        system.ingest(documents[start : start + BATCH])
        batch = Batch(start + 1, start + BATCH, time.monotonic() - started, _spent(groups) - before)
        say(f"   documents {batch.first}-{batch.last}: {batch.seconds:.1f} s, {batch.cpu_seconds:.1f} s of CPU")
        batches.append(batch)
    return batches


def _spent(groups: dict[str, Group]) -> float:
    return groups["client"].spent() + groups["server"].spent()


def _graph_facts(counter: StatementCounter) -> dict[str, str]:
    row = counter.fetch(
        "SELECT (SELECT count(*) FROM lightrag_graph_nodes) AS nodes, (SELECT count(*) FROM lightrag_graph_edges) AS edges"
    )[0]
    return {"entities": str(row["nodes"]), "relations": str(row["edges"])}


if __name__ == "__main__":
    sys.exit(main())
