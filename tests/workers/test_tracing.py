"""What an installation tells of its work: traces from a request to the SQL and model calls of workers, and log lines with
ids. Neither holds content."""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.db.session import Database
from app.db.traced import describe
from app.domain.tenants.records import Role
from app.domain.tenants.service import TenantService
from app.settings import Settings
from app.tracing import carrier, note_past, span, start_tracing, stop_tracing
from tests.architecture.sources import ROOT
from tests.factories import Tenancy, register_stub
from tests.fakes.collector import Collector, KeptSpan, open_collector
from tests.fakes.stub_process import StubServer
from tests.workers.fleet import open_fleet

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HEADERS = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-00"}
CONTENT, FAILING, NAME, QUESTION, METADATA = (
    "Quokkamark",
    "Potoroomark",
    "wombatmark",
    "numbatmark",
    "bilbymark",
)


def ancestors(span: KeptSpan, spans: dict[str, KeptSpan]) -> list[str]:
    """Names from the span up to the first one of its trace."""
    found = [span.name]
    while (parent := spans.get(span.parent_id)) is not None:
        span = parent
        found.append(span.name)
    return found


@dataclass
class Told:
    """What an installation told of some uploads and queries, those that fail included: spans, and lines of logs."""

    collector: Collector
    log: str
    workspace_id: UUID
    tenant_id: UUID
    chat: str
    key: str
    documents: dict[str, str]

    def lines(self, event: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]
        return [line for line in found if line["event"] == event]


@pytest.fixture(scope="module")
async def told(
    settings: Settings,
    owner_database: Database,
    database: Database,
    stub_server: StubServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Told:
    tenancy = await Tenancy.create(owner_database, database)
    chat = await register_stub(stub_server, owner_database, settings)
    workspace_id = await tenancy.add_workspace(engines=("lazy", "graph"), chat=chat)
    key = await TenantService(owner_database).create_key(tenancy.tenant_id, name="test", role=Role.ADMIN)
    folder = tmp_path_factory.mktemp("told")
    async with open_collector() as collector:
        options = {"traces_endpoint": collector.endpoint, "traces_headers": "x-token=letmein", "max_attempts": "1"}
        async with open_fleet(settings, folder, **options) as fleet:
            fleet.processes.start_api()
            fleet.start_worker()
            await asyncio.to_thread(fleet.processes.wait_until_ready)
            documents = await use(fleet.processes.api_url, workspace_id, key, stub_server)
        # What they said to the end, and so after they have ended.
        log = "\n".join(file.read_text() for file in sorted((folder / "logs").iterdir()))
    stub_server.reset()
    return Told(collector, log, workspace_id, tenancy.tenant_id, chat, key, documents)


async def use(api_url: str, workspace_id: UUID, key: str, stub: StubServer) -> dict[str, str]:
    """Upload a good text, a blank one, a broken file and one that the model fails at, then ask; ids by status and name."""
    good = f"Marie Curie worked in Paris with the {CONTENT}. Pierre Curie lived in Paris too."
    failing = f"Ada Lovelace met {FAILING} in London. Charles Babbage lived there too."
    stub.set_faults(
        {"match": FAILING, "kind": "extract", "status": 400, "times": 9, "body": f'{{"error": "{CONTENT}"}}'}
    )
    files = {"good.txt": good, "blank.txt": "  ", "failing.txt": failing, "broken.pdf": f"%PDF-1.7 {CONTENT}"}
    headers = {"Authorization": f"Bearer {key}"}
    found: dict[str, str] = {}
    async with httpx.AsyncClient(
        base_url=f"{api_url}/v1/workspaces/{workspace_id}", headers=headers, timeout=60, trust_env=False
    ) as client:
        for name, text in files.items():
            answer = await client.post(
                "/documents", files={"files": (f"{NAME}-{name}", text.encode())},
                data={"metadata": f'{{"tag": "{METADATA}"}}'}, headers=HEADERS | {"X-Request-ID": f"of-{name}"},
            )  # fmt: skip
            assert answer.status_code == 202, answer.text
            document = answer.json()["documents"][0]["id"]
            shown = await client.get(f"/documents/{document}", params={"wait": 60})
            found[f"{shown.json()['status']} {name}"] = document
        for query in ({"mode": "mix"}, {"mode": "lazy"}, {"mode": QUESTION}, {"mode": "lazy", "filter": {QUESTION: 1}}):
            await client.post("/query", json={"query": f"Who is the {QUESTION}?"} | query)
        await client.get("/documents", params={"filename": NAME})
        await client.get(f"/entities/{QUESTION}")
        await client.post(
            "/query", content=f'{{"query": "{QUESTION}'.encode(), headers={"content-type": "application/json"}
        )
        await client.get("/documents", headers={"Authorization": f"Bearer {key}x"})
    return found


def paths(told: Told) -> list[tuple[str, ...]]:
    """Of the trace of the uploads: the process, and names from each span to the first one."""
    spans = {span.span_id: span for span in told.collector.spans}
    return [(span.service, *ancestors(span, spans)) for span in told.collector.spans if span.trace_id == TRACE]


UPLOAD = "POST /v1/workspaces/{workspace_id}/documents"
SENT = ("send jobs", UPLOAD)
GRAPH = ("process graph", "send jobs", "process ingest", *SENT)


@pytest.mark.acceptance
@pytest.mark.timeout(180)
async def test_one_trace_leads_from_an_upload_to_the_worker_s_statements_and_model_calls(told: Told) -> None:
    found = paths(told)
    assert ("trellis-api", *SENT) in found
    assert ("trellis-api", "INSERT documents", UPLOAD) in found
    assert ("trellis-worker", "parse", "process ingest", *SENT) in found
    assert ("trellis-worker", "INSERT chunks", "index", "process ingest", *SENT) in found
    assert ("trellis-worker", f"chat {told.chat}", "extract", *GRAPH) in found
    assert ("trellis-worker", "INSERT lightrag_graph_nodes", "merge", *GRAPH) in found
    assert ("trellis-worker", "COMMIT", "merge", *GRAPH) in found
    job = next(span for span in told.collector.spans if span.name == "process ingest")
    assert job.attributes["trellis.tenant_id"] == str(told.tenant_id)
    request = next(span for span in told.collector.spans if span.name == UPLOAD)
    assert request.attributes["http.response.status_code"] == 202
    assert request.attributes["trellis.workspace_id"] == str(told.workspace_id)
    assert told.collector.headers["x-token"] == "letmein"


@pytest.mark.acceptance
async def test_a_question_is_traced_too_and_those_who_watch_are_not(told: Told) -> None:
    spans = told.collector.spans
    question = next(span for span in spans if span.name.endswith("/query"))
    assert "SELECT chunks" in {span.name for span in spans if span.trace_id == question.trace_id}
    assert not [span.name for span in spans if "readyz" in span.name]


@pytest.mark.acceptance
async def test_lines_of_the_work_that_follows_carry_the_ids_of_whoever_asked(told: Told) -> None:
    assert {name.split()[0] for name in told.documents} == {"ready", "partial", "failed"}
    for name in ("blank.txt", "broken.pdf"):
        [line] = [line for line in told.lines("attempt_failed") if line.get("request_id") == f"of-{name}"]
        ids = {"tenant_id": str(told.tenant_id), "workspace_id": str(told.workspace_id)}
        assert line.items() >= {**ids, "document_id": told.documents[f"failed {name}"]}.items()
        assert line["version_id"]
    polls = [line for line in told.lines("request") if line["route"].endswith("/documents/{document_id}")]
    assert {line["document_id"] for line in polls} == set(told.documents.values())


@pytest.mark.acceptance
async def test_neither_logs_nor_spans_hold_content_or_secrets(told: Told) -> None:
    words = (CONTENT, FAILING, METADATA, QUESTION, NAME, told.key, "letmein", "curie", "lovelace",
             "postgresql://")  # fmt: skip
    spans, log = told.collector.raw.lower(), told.log.lower()
    assert told.lines("request")
    # Celery tells its broker, without the password.
    assert [word for word in (*words, "redis://") if word.lower().encode() in spans] == []
    assert [word for word in words if word.lower() in log] == []


def test_without_an_endpoint_nothing_of_it_is_imported(tmp_path: Path) -> None:
    script = (
        "import sys, app.main, workers.tasks.ingestion, workers.tasks.upkeep\n"
        "from app.tracing import carrier, span, start_tracing\n"
        "app.main.create_app(); start_tracing('api', None, '', 1.0)\n"
        "with span('x', {'not allowed': 1}): assert carrier() == {}\n"
        # The client of Redis looks whether the part for metrics is there.
        "found = [name for name in sys.modules if name.startswith(('opentelemetry.sdk.trace', 'opentelemetry.exporter'))]\n"
        "assert found == [], found\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, env=environment)


def test_the_framework_sends_no_spans_of_its_own(tmp_path: Path) -> None:
    """They would hold paths and queries, wherever the environment names a collector for other programs."""
    script = (
        "import asyncio, httpx\n"
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import SimpleSpanProcessor\n"
        "from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter\n"
        "from app.main import create_app\n"
        "kept = InMemorySpanExporter(); provider = TracerProvider()\n"
        "provider.add_span_processor(SimpleSpanProcessor(kept)); trace.set_tracer_provider(provider)\n"
        "async def ask():\n"
        "    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app()), base_url='http://x') as client:\n"
        "        assert (await client.get('/healthz?q=secret')).status_code == 200\n"
        "asyncio.run(ask())\n"
        "assert kept.get_finished_spans() == (), kept.get_finished_spans()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FASTAPI_OTEL_AUTO_CONFIGURE": "true"}
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, env=environment)


async def test_work_for_others_begins_a_trace_of_its_own_that_points_to_the_message() -> None:
    async with open_collector() as collector:
        start_tracing("test", collector.endpoint, "", 1.0)
        try:
            with span("first"):
                sent = carrier()
            with pytest.raises(KeyError), span("second", {"trellis.job": "x"}, link=sent):
                raise KeyError("secret words")
            with pytest.raises(ValueError, match="spans do not say"), span("third", {"query": "secret words"}):
                pass
        finally:
            await asyncio.to_thread(stop_tracing)
    first, second = sorted(collector.spans, key=lambda each: each.name)
    assert (second.parent_id, second.links) == ("", (first.trace_id,))
    assert second.trace_id != first.trace_id
    assert second.attributes == {"trellis.job": "x", "error.type": "builtins.KeyError"}
    assert b"secret words" not in collector.raw


async def test_a_share_of_none_is_none_whatever_the_caller_wants() -> None:
    wanted = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    async with open_collector() as collector:
        start_tracing("test", collector.endpoint, "", 0.0)
        try:
            with span("first", parent=wanted):
                note_past("second", {}, 0.1)
        finally:
            await asyncio.to_thread(stop_tracing)
    assert collector.spans == []


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("SELECT a FROM documents WHERE name = $1", "SELECT documents"),
        ("INSERT INTO passages (a) VALUES ('from secrets')", "INSERT passages"),
        ("UPDATE index_states SET x = 'it''s from hell'", "UPDATE index_states"),
        ("SELECT * FROM cypher('g', $$ MATCH (a) WHERE a.name = 'x' RETURN a from b $$) AS (a agtype)", "SELECT"),
        ("WITH found AS (SELECT 1 FROM chunks) SELECT 2", "WITH chunks"),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN"),
        ("SELECT 'unfinished from secrets", "SELECT"),
        ("", "STATEMENT"),
    ],
)
def test_a_statement_is_told_by_its_kind_and_its_table(statement: str, name: str) -> None:
    assert describe(statement)[0] == name


@pytest.mark.parametrize("endpoint", ["collector:4318", "https://user:word@collector/v1/traces", "https://c/v1?key=x"])
def test_an_endpoint_with_secrets_or_without_a_host_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="TRELLIS_TRACES_ENDPOINT") as caught:
        Settings(traces_endpoint=endpoint)
    assert endpoint not in str(caught.value)
