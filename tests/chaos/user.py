"""A user of the API, who asks again what was not answered because the installation was hurt at that moment."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import httpx

from tests.chaos.corpus import Text
from tests.chaos.stack import ChaosStack

# No summaries, however many documents speak of a port: what a model would make of them depends on the order of merging.
SETTINGS = {
    "chunk_strategy": "sentence",
    "chunk_tokens": 200,
    "summary_after_fragments": 100,
    "summary_max_tokens": 8000,
}
# On a busy machine a process takes minutes to start.
PATIENCE_SECONDS = 240
UNAVAILABLE = (502, 503, 504)


class Surprised(AssertionError):
    """The API answered what it must not answer, whatever happens around it."""


def _says_later(answer: httpx.Response) -> bool:
    # A request that broke off may still be under way, or hold its key for as long as a lease.
    in_progress = answer.status_code == 409 and answer.json().get("code") == "idempotency_in_progress"
    return in_progress or answer.status_code in UNAVAILABLE


class User:
    """Works in workspaces of the corpus' names, as one tenant. A document is found by workspace and file name."""

    def __init__(self, stack: ChaosStack, tenant: str, key: str) -> None:
        self.stack = stack
        self.tenant = tenant
        self._client = httpx.AsyncClient(
            base_url=stack.processes.api_url, headers={"Authorization": f"Bearer {key}"}, timeout=30
        )
        self._workspaces: dict[str, str] = {}

    @classmethod
    async def create(cls, stack: ChaosStack, tenant: str) -> "User":
        return cls(stack, tenant, await stack.new_key(tenant))

    async def close(self) -> None:
        await self._client.aclose()

    async def make_workspaces(self, names: Iterable[str], **settings: Any) -> None:
        for name in names:
            body = {"name": name, "engines": ["lazy", "graph"], "settings": SETTINGS | settings}
            made = await self.ask("POST", "/v1/workspaces", json=body)
            self._workspaces[name] = made.raise_for_status().json()["id"]

    async def watch(self, url: str) -> dict[str, str]:
        """Have every workspace tell what happens there; the secret of each webhook by its id."""
        secrets: dict[str, str] = {}
        for workspace in self._workspaces.values():
            made = await self.ask("POST", f"/v1/workspaces/{workspace}/webhooks", json={"url": url})
            webhook = made.raise_for_status().json()
            secrets[webhook["id"]] = webhook["secret"]
        return secrets

    async def upload(self, texts: Iterable[Text]) -> None:
        by_workspace: dict[str, list[Text]] = defaultdict(list)
        for text in texts:
            by_workspace[text.workspace].append(text)
        for workspace, lot in by_workspace.items():
            files = [("files", (text.filename, text.content.encode(), "text/markdown")) for text in lot]
            # Sent again, bytes that are there already make no second document.
            self._expect(await self.ask("POST", self._at(workspace), files=files), 200, 202)

    async def documents(self, workspace: str) -> dict[str, dict[str, Any]]:
        """All documents of a workspace by file name."""
        found: dict[str, dict[str, Any]] = {}
        cursor: str | None = None
        while True:
            parameters = {"limit": 100, **({"cursor": cursor} if cursor else {})}
            page = (await self.ask("GET", self._at(workspace), params=parameters)).raise_for_status().json()
            found |= {item["filename"]: item for item in page["items"]}
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    async def all_documents(self) -> list[dict[str, Any]]:
        return [item for name in self._workspaces for item in (await self.documents(name)).values()]

    async def settled(self, workspace: str) -> dict[str, dict[str, Any]]:
        """The documents of a workspace, once all are final; the test's own time limit ends a wait that is in vain."""
        while True:
            found = await self.documents(workspace)
            if all(item["status"] not in ("processing", "deleting") for item in found.values()):
                return found
            await asyncio.sleep(0.2)

    async def delete(self, text: Text) -> None:
        document = await self._find(text)
        if document is not None:
            # Gone already is as good as accepted.
            self._expect(await self.ask("DELETE", document["links"]["self"]), 202, 404)

    async def replace(self, text: Text) -> None:
        """Put the text's next revision in its place."""
        document, revised = await self._find(text), text.revised()
        if document is not None:
            files = [("files", (revised.filename, revised.content.encode(), "text/markdown"))]
            self._expect(await self.ask("PUT", document["links"]["content"], files=files), 200, 202)

    async def cancel(self, text: Text) -> None:
        document = await self._find(text)
        if document is not None:
            # It may have been done, or called off, before.
            self._expect(await self.ask("POST", f"{document['links']['self']}/cancel"), 202, 409)

    async def retry(self, document: dict[str, Any]) -> None:
        self._expect(await self.ask("POST", f"{document['links']['self']}/retry"), 202, 404, 409)

    async def retry_text(self, text: Text) -> None:
        document = await self._find(text)
        if document is not None:
            await self.retry(document)

    async def query(self, workspace: str, question: str, mode: str) -> dict[str, Any]:
        body = {"query": question, "mode": mode}
        answer = await self.ask("POST", f"/v1/workspaces/{self._workspaces[workspace]}/query", json=body)
        found: dict[str, Any] = answer.raise_for_status().json()
        return found

    async def ask(self, method: str, path: str, *, repeat: bool = True, **request: Any) -> httpx.Response:
        """The answer; one that says "not now" is asked for again unless told otherwise."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        headers = {"Idempotency-Key": uuid4().hex} if method == "POST" and not path.endswith("/query") else {}
        while True:
            try:
                answer = await self._client.request(method, path, headers=headers, **request)
            except httpx.TransportError as error:
                self.stack.processes.check()  # one that ended by itself will not come back
                if not repeat or asyncio.get_running_loop().time() > deadline:
                    raise Surprised(f"{method} {path} was not answered: {error!r}") from error
                await asyncio.sleep(0.3)
                continue
            if answer.status_code >= 500 and answer.status_code not in UNAVAILABLE:
                raise Surprised(f"{method} {path} answered {answer.status_code}: {answer.text[:500]}")
            if not _says_later(answer) or not repeat or asyncio.get_running_loop().time() > deadline:
                return answer
            await asyncio.sleep(0.3)

    async def _find(self, text: Text) -> dict[str, Any] | None:
        return (await self.documents(text.workspace)).get(text.filename)

    def _at(self, workspace: str) -> str:
        return f"/v1/workspaces/{self._workspaces[workspace]}/documents"

    def _expect(self, answer: httpx.Response, *statuses: int) -> None:
        if answer.status_code not in statuses:
            raise Surprised(
                f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text[:500]}"
            )
