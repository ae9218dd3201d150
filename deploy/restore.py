"""A backup of a running topology and its way into a new one, as docs/runbook.md says, and what has to be the same after it."""

import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from deploy.engine import say
from deploy.topology import Topology, TopologyFailed

DOCUMENTS = Path(__file__).resolve().parents[1] / "demo" / "documents"
QUESTION = "Who supplied the new seals?"
MODES = ("lazy", "mix", "baseline")
PATIENCE_SECONDS = 180
POLL_SECONDS = 1.0


class Backup:
    """A dump of the database and the files of originals, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._dump = folder / "trellis.dump"
        self._originals = folder / "blobs.tar"

    def make(self, topology: Topology) -> None:
        """Postgres first, while it serves; then the originals."""
        started = time.monotonic()
        dump = in_postgres(topology, "pg_dump -h 127.0.0.1 -U postgres --format=custom trellis")
        topology.engine.pass_through(*dump, target=self._dump)
        topology.engine.call("volume", "export", "--output", str(self._originals), topology.volume("blobs"))
        say(f"backed up in {time.monotonic() - started:.0f} s: {self._dump.stat().st_size} bytes of rows")

    def restore(self, topology: Topology) -> None:
        """Into one that has nothing yet; it runs afterwards."""
        started = time.monotonic()
        topology.up("postgres", "redis")
        topology.run("migrate", ["trellis", "db", "bootstrap"])
        restore = in_postgres(topology, "pg_restore -h 127.0.0.1 -U postgres --exit-on-error --dbname=trellis")
        topology.engine.pass_through(*restore, source=self._dump)
        topology.engine.call("volume", "import", topology.volume("blobs"), str(self._originals))
        topology.up()
        say(f"restored in {time.monotonic() - started:.0f} s")


def in_postgres(topology: Topology, command: str) -> list[str]:
    """What the engine is told for a command in the container of Postgres, as its administrator."""
    password = urlsplit(topology.services["migrate"].environment["TRELLIS_ADMIN_DATABASE_URL"]).password or ""
    return ["exec", "-i", "--env", f"PGPASSWORD={password}", topology.container("postgres"), *command.split()]


class Probe:
    """Documents in an installation, and what it says of them."""

    def __init__(self, url: str, key: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/v1", headers={"Authorization": f"Bearer {key}"}, timeout=60)

    def fill(self) -> None:
        """A workspace with documents that are ready."""
        made = self._call("POST", "/workspaces", json={"name": "kept", "engines": ["lazy", "graph"]})
        files = sorted(DOCUMENTS.iterdir())[:4]
        path = f"/workspaces/{made['id']}/documents"
        self._call("POST", path, files=[("files", (file.name, file.read_bytes())) for file in files])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while {document["status"] for document in self._call("GET", path)["items"]} != {"ready"}:
            if time.monotonic() > deadline:
                raise TopologyFailed(f"documents were not ready in {PATIENCE_SECONDS} s")
            time.sleep(POLL_SECONDS)
        self._before = self._state()

    def compare(self, other: "Probe") -> None:
        """Raise TopologyFailed unless `other` has the documents, originals and answers that were here after `fill`."""
        found = other._state()
        if found != self._before:
            raise TopologyFailed(f"restored: {found}\nbacked up: {self._before}")

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {}
        workspaces = [item for item in self._call("GET", "/workspaces")["items"] if item["name"] == "kept"]
        for workspace in workspaces:
            path = f"/workspaces/{workspace['id']}"
            for document in self._call("GET", f"{path}/documents")["items"]:
                content = self._http.get(f"{path}/documents/{document['id']}/content")
                state[document["id"]] = (document["status"], len(content.content), content.status_code)
            for mode in MODES:
                answer = self._call("POST", f"{path}/query", json={"query": QUESTION, "mode": mode})
                state[mode] = [citation["document_id"] for citation in answer["citations"]]
        return state

    def _call(self, method: str, path: str, **arguments: Any) -> Any:
        response = self._http.request(method, path, **arguments)
        if not response.is_success:
            raise TopologyFailed(f"{method} {path} answered {response.status_code}: {response.text[:500]}")
        return response.json()
