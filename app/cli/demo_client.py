"""The HTTP API as the demo uses it: every unexpected answer is a failure of the demo that shows the problem."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

REQUEST_SECONDS = 60
POLL_SECONDS = 1


class DemoFailed(RuntimeError):
    """Something did not behave as promised; the message says what."""


class DemoClient:
    """One workspace of a running Trellis."""

    def __init__(self, api_url: str, api_key: str) -> None:
        self._http = httpx.Client(
            base_url=f"{api_url}/v1", headers={"Authorization": f"Bearer {api_key}"}, timeout=REQUEST_SECONDS
        )
        self._workspace = ""

    def close(self) -> None:
        self._http.close()

    def create_workspace(self, name: str, engines: Sequence[str]) -> str:
        body = {"name": name, "engines": list(engines)}
        workspace: dict[str, Any] = self._call("POST", "/workspaces", 201, json=body)
        self._workspace = f"/workspaces/{workspace['id']}"
        return str(workspace["id"])

    def delete_workspace(self) -> None:
        """Have the workspace removed, if there is one; its end is not waited for."""
        if self._workspace:
            self._call("DELETE", self._workspace, 202)

    def upload(self, files: Sequence[Path]) -> dict[str, str]:
        """Upload files in one request; the id of each document by its file's name."""
        parts = [("files", (file.name, file.read_bytes())) for file in files]
        answer = self._call(
            "POST", f"{self._workspace}/documents", 202, files=parts, data={"metadata": json.dumps({"source": "demo"})}
        )
        return dict(zip((file.name for file in files), (row["id"] for row in answer["documents"]), strict=True))

    def document(self, document_id: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", f"{self._workspace}/documents/{document_id}", 200)
        return answer

    def modes(self) -> list[str]:
        """Every mode that the API offers."""
        return [mode["name"] for mode in self._call("GET", "/modes", 200)["modes"]]

    def query(self, question: str, mode: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._call(
            "POST", f"{self._workspace}/query", 200, json={"query": question, "mode": mode}
        )
        return answer

    def refresh_themes(self, *, patience_seconds: float) -> None:
        """Have the map of themes made, and wait until it is that of the documents as they are now."""
        self._call("POST", f"{self._workspace}/themes/refresh", 202)
        deadline = time.monotonic() + patience_seconds
        while True:
            found = self._call("GET", f"{self._workspace}/themes", 200)
            if found["map"] is not None and not found["map"]["is_stale"]:
                return
            if time.monotonic() > deadline:
                raise DemoFailed(f"there was no map of themes after {patience_seconds:.0f} s: {found['notices']}")
            time.sleep(POLL_SECONDS)

    def entity_exists(self, name: str) -> bool:
        path = f"{self._workspace}/entities/{quote(name, safe='')}"
        found = self._http.get(path)
        # A merged name still leads to what it was merged into.
        return found.status_code == httpx.codes.OK and found.json()["name"] == name

    def merge(self, sources: Sequence[str], target: str) -> None:
        body = {"sources": list(sources), "target": target}
        self._call("POST", f"{self._workspace}/entities/merge", 200, json=body)

    def delete(self, document_id: str, *, patience_seconds: float) -> None:
        """Delete a document and wait until it is gone."""
        path = f"{self._workspace}/documents/{document_id}"
        self._call("DELETE", path, 202)
        deadline = time.monotonic() + patience_seconds
        while self._http.get(path).status_code != httpx.codes.NOT_FOUND:
            if time.monotonic() > deadline:
                raise DemoFailed(f"document {document_id} was still there {patience_seconds:.0f} s after its deletion")
            time.sleep(POLL_SECONDS)

    def _call(self, method: str, path: str, expected: int, **arguments: Any) -> Any:
        response = self._http.request(method, path, **arguments)
        if response.status_code != expected:
            raise DemoFailed(
                f"{method} {path} answered {response.status_code} instead of {expected}: {response.text[:600]}"
            )
        return response.json() if response.content else None
