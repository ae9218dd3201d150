"""Who asks and who writes in the load bench, and how an answer is judged."""

import asyncio
import itertools
import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

MODES = ("baseline", "lazy", "lazy-fast", "lazy-wide")
GRAPH_MODES = ("mix", "local", "global", "naive")
MARKER = re.compile(r"Corpus[A-Z]{4}\b")
NAMES = ("Helena Petrowa", "Marta Oliveira", "Jonas Weber", "Ada Nowak", "Luis Ortega")
TEXT = (
    "Report {number} of {marker}. {name} replaced the seals of press {press} in Port Lindau of {marker}. "
    "The press had run for {hours} hours. {other} tested the new seals of {marker} a week later."
)
SECONDS_BETWEEN_WRITES = 0.5
KEPT = 40  # documents that a writer has added and not yet removed


@dataclass(frozen=True)
class Place:
    """A workspace, with the marker that every text of it holds and no other text."""

    workspace_id: str
    marker: str
    has_graph: bool
    headers: dict[str, str] = field(hash=False)


@dataclass
class Corpus:
    """What was added, by workspace, and when a deletion was answered, by document."""

    documents: dict[str, list[str]] = field(default_factory=dict)
    deleted: dict[str, float] = field(default_factory=dict)
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def documents_of(self, place: Place) -> list[str]:
        return self.documents.setdefault(place.workspace_id, [])

    def text(self, place: Place) -> str:
        number = next(self.numbers)
        name, other = NAMES[number % 5], NAMES[(number // 5) % 5]
        return TEXT.format(number=number, marker=place.marker, name=name, press=number % 40, hours=number, other=other)


async def places_of(http: aiohttp.ClientSession, keys: Sequence[str], count: int, *, graph_every: int) -> list[Place]:
    places = []
    for number in range(count):
        headers = {"Authorization": f"Bearer {keys[number % len(keys)]}"}
        has_graph = number // len(keys) % graph_every == 0
        body = {"name": f"load {number}", "engines": ["lazy", "graph"] if has_graph else ["lazy"]}
        made = await _json(http.post("/v1/workspaces", json=body, headers=headers))
        marker = "Corpus" + "".join(chr(ord("A") + number // 26**place % 26) for place in range(4))
        places.append(Place(made["id"], marker, has_graph, headers))
    return places


async def fill(http: aiohttp.ClientSession, corpus: Corpus, places: Sequence[Place], documents: int) -> None:
    """So many documents in each workspace, all of them ready."""
    for place in places:
        for _ in range(documents):
            await add(http, corpus, place)
    for place in places:
        for document in corpus.documents_of(place):
            await wait_for(http, place, document)


async def add(http: aiohttp.ClientSession, corpus: Corpus, place: Place) -> str:
    text = corpus.text(place)
    url = f"/v1/workspaces/{place.workspace_id}/documents"
    answer = await _json(http.post(url, json={"title": text[:40], "text": text}, headers=place.headers))
    document = str(answer["documents"][0]["id"])
    corpus.documents_of(place).append(document)
    return document


async def wait_for(http: aiohttp.ClientSession, place: Place, document: str) -> None:
    url = f"/v1/workspaces/{place.workspace_id}/documents/{document}"
    while True:
        status = (await _json(http.get(url, params={"wait": 30}, headers=place.headers)))["status"]
        if status != "processing":
            break
    if status != "ready":
        raise SystemExit(f"a document ended as {status}")


class Asker:
    """Asks a question of a workspace and judges the answer; what is wrong goes into `faults`."""

    def __init__(self, http: aiohttp.ClientSession, corpus: Corpus, places: Sequence[Place], faults: list[str]) -> None:
        self._http = http
        self._corpus = corpus
        self._places = places
        self._faults = faults

    async def ask(self, chance: random.Random) -> tuple[str, float]:
        """The mode and the milliseconds that it took."""
        place = chance.choice(self._places)
        mode = chance.choice((*MODES, *GRAPH_MODES) if place.has_graph else MODES)
        question = f"Who replaced the seals of press {chance.randrange(40)} and {chance.choice(NAMES)}?"
        url = f"/v1/workspaces/{place.workspace_id}/query"
        asked, started = time.monotonic(), time.perf_counter()
        async with self._http.post(url, json={"query": question, "mode": mode}, headers=place.headers) as response:
            body = await response.json()
        milliseconds = (time.perf_counter() - started) * 1000
        if response.status != 200:
            self._faults.append(f"{mode}: {response.status} {body.get('code')}: {body.get('detail')}")
        else:
            self._faults += [f"{mode}: {fault}" for fault in self._judge(place, body, asked)]
        return mode, milliseconds

    def _judge(self, place: Place, answer: Any, asked: float) -> list[str]:
        evidence = answer["evidence"]
        faults = []
        texts = [answer["context"], *(passage["text"] for passage in evidence["passages"])]
        if strangers := {marker for text in texts for marker in MARKER.findall(text)} - {place.marker}:
            faults.append(f"markers of other workspaces: {sorted(strangers)}")
        found = {passage["document_id"] for passage in evidence["passages"]}
        found |= {key for part in ("entities", "relations") for item in evidence[part] for key in item["document_ids"]}
        if not evidence["passages"]:
            faults.append("no passage, where every workspace has some")
        if late := [key for key in found if self._corpus.deleted.get(key, asked + 1) < asked]:
            faults.append(f"{len(late)} documents that had been deleted")
        return faults


class Writer:
    """Adds a document to some workspace every half second, and removes the oldest of its own again."""

    def __init__(
        self, http: aiohttp.ClientSession, corpus: Corpus, places: Sequence[Place], chance: random.Random
    ) -> None:
        self._http = http
        self._corpus = corpus
        self._places = places
        self._chance = chance
        self._own: list[tuple[Place, str]] = []
        self.added = 0
        self.removed = 0
        self.faults: list[str] = []

    async def run(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            place = self._chance.choice(self._places)
            try:
                self._own.append((place, await add(self._http, self._corpus, place)))
                self.added += 1
                if len(self._own) > KEPT or self._chance.random() < 0.5:
                    await self._remove(*self._own.pop(0))
            except aiohttp.ClientResponseError as error:
                self.faults.append(f"writing: {error.status} {error.message}")
            await asyncio.sleep(SECONDS_BETWEEN_WRITES)

    async def _remove(self, place: Place, document: str) -> None:
        url = f"/v1/workspaces/{place.workspace_id}/documents/{document}"
        await _json(self._http.delete(url, headers=place.headers))
        self._corpus.deleted[document] = time.monotonic()
        self._corpus.documents_of(place).remove(document)
        self.removed += 1


async def _json(request: Any) -> Any:
    async with request as response:
        response.raise_for_status()
        return await response.json()
