"""Asks one system questions in a process of its own: `python -m bench.sidebyside.asker stock|trellis`.

Each line of input is a round in JSON, each line of output its result. Both systems run in process, without HTTP.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from lightrag import LightRAG, QueryParam
from lightrag.llm.openai import openai_embed
from lightrag.utils import EmbeddingFunc

from app.bootstrap import Container, open_container
from app.retrieval.contract import EngineWorkspace, Keywords, SearchRequest
from app.retrieval.lightrag import search
from app.retrieval.lightrag.tokenizer import engine_tokenizer
from app.settings import Settings
from bench.sidebyside.model import DIMENSION

TOP_K, CHUNK_TOP_K = 40, 20
# For comparing what was found: LightRAG cuts chunks by the room its own prompt leaves, Trellis when it renders the context.
EVERYTHING = 10**6


@dataclass(frozen=True)
class Ask:
    """One question with the keywords that both systems are given."""

    query: str
    high: list[str]
    low: list[str]


class Asker(Protocol):
    async def ask(self, ask: Ask, mode: str, *, is_whole: bool) -> dict[str, list[Any]]:
        """What was found: `entities`, `relations` and `chunks`, best first. With `is_whole` chunks are not cut by tokens."""
        ...


class StockAsker:
    """LightRAG's own storages and its own context call, on the product's tables."""

    def __init__(self, rag: Any) -> None:
        self._rag = rag

    @classmethod
    async def open(cls, job: dict[str, str], stack: AsyncExitStack) -> "StockAsker":
        url = job["model_url"]

        async def embed(texts: list[str], **_: Any) -> Any:
            return await openai_embed.func(texts, model="stub", base_url=url, api_key="none")

        async def no_model(*_: Any, **__: Any) -> str:
            raise RuntimeError("with keywords given no model is asked")

        rag = LightRAG(
            workspace=job["engine_workspace"],
            working_dir=job["folder"],
            kv_storage="PGKVStorage",
            vector_storage="PGVectorStorage",
            graph_storage="PGTableGraphStorage",
            doc_status_storage="PGDocStatusStorage",
            tokenizer=engine_tokenizer(),
            llm_model_func=no_model,
            embedding_func=EmbeddingFunc(
                embedding_dim=DIMENSION, func=embed, max_token_size=8192, model_name=job["embedding_model"]
            ),
            # As the product asks: without a cut by cosine, chunks by how often the graph names them.
            cosine_better_than_threshold=-1.0,
            kg_chunk_pick_method="WEIGHT",
            enable_llm_cache=False,
        )
        await rag.initialize_storages()
        stack.push_async_callback(rag.finalize_storages)
        return cls(rag)

    async def ask(self, ask: Ask, mode: str, *, is_whole: bool) -> dict[str, list[Any]]:
        parameters = QueryParam(
            mode=mode,
            only_need_context=True,
            top_k=TOP_K,
            chunk_top_k=CHUNK_TOP_K,
            hl_keywords=ask.high,
            ll_keywords=ask.low,
            enable_rerank=False,
            **({"max_total_tokens": EVERYTHING} if is_whole else {}),
        )
        data = (await self._rag.aquery_data(ask.query, parameters)).get("data") or {}
        return {
            "entities": [row["entity_name"] for row in data.get("entities", ())],
            "relations": [sorted((row["src_id"], row["tgt_id"])) for row in data.get("relationships", ())],
            "chunks": [row["chunk_id"] for row in data.get("chunks", ())],
        }


class _Judged:
    """Notes the chunks that the last search took for trusted, before their passages are ranked and cut."""

    def __init__(self) -> None:
        self.chunks: list[Any] = []
        view: Any = search._View
        retrieve = view.retrieve

        async def noting(*arguments: Any) -> Any:
            judged = await retrieve(*arguments)
            self.chunks = list(judged.passages)
            return judged

        view.retrieve = noting


class ProductAsker:
    """Trellis's engine search: what the API calls."""

    def __init__(self, container: Container, workspace: EngineWorkspace) -> None:
        self._container = container
        self._workspace = workspace
        self._judged = _Judged()

    @classmethod
    async def open(cls, job: dict[str, str], stack: AsyncExitStack) -> "ProductAsker":
        container = await stack.enter_async_context(open_container(Settings()))
        workspace = await container.workspaces.open(UUID(job["tenant"]), UUID(job["workspace"]))
        return cls(container, workspace)

    async def ask(self, ask: Ask, mode: str, *, is_whole: bool) -> dict[str, list[Any]]:  # noqa: ARG002 - always is
        request = SearchRequest(ask.query, mode, graph_top_k=TOP_K, keywords=Keywords(tuple(ask.high), tuple(ask.low)))
        found = await self._container.graph.search.search(self._workspace, request)
        return {
            "entities": [each.name for each in found.entities],
            "relations": [sorted((each.source, each.target)) for each in found.relations],
            "chunks": [f"{version}-chunk-{ordinal:03d}" for version, ordinal in self._judged.chunks],
        }


async def serve(kind: str) -> None:
    lines = iter(sys.stdin.readline, "")
    job = json.loads(next(lines))
    async with AsyncExitStack() as stack:
        asker: Asker = await (StockAsker if kind == "stock" else ProductAsker).open(job, stack)
        answer({"ready": os.getpid()})
        while line := await asyncio.to_thread(next, lines, ""):
            answer(await run_round(asker, json.loads(line)))


def answer(result: dict[str, Any]) -> None:
    print(json.dumps(result), flush=True)


async def run_round(asker: Asker, round_: dict[str, Any]) -> dict[str, Any]:
    """Ask all questions of a round, `clients` at a time; milliseconds of each, and what was found if that is asked for."""
    asks = [Ask(**each) for each in round_["asks"]]
    waiting = iter(range(len(asks)))
    milliseconds = [0.0] * len(asks)
    found: list[dict[str, list[Any]]] = [{}] * len(asks)

    async def client() -> None:
        for number in waiting:
            started = time.perf_counter()
            found[number] = await asker.ask(asks[number], round_["mode"], is_whole=round_["is_whole"])
            milliseconds[number] = (time.perf_counter() - started) * 1000

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(round_["clients"])))
    result: dict[str, Any] = {"milliseconds": milliseconds, "seconds": time.perf_counter() - started}
    return result | ({"found": found} if round_["is_whole"] else {})


def main(arguments: Sequence[str]) -> None:
    asyncio.run(serve(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
