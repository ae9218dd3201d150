"""A deterministic OpenAI-compatible model server for tests and benchmarks, with no model inside (needs only aiohttp).

    python -m tests.fakes.stub_llm --port 8089 [--llm-ms 300] [--embed-ms 20] [--dim 384] [--max-concurrent 0]
        [--entities 16] [--relations 16] [--api-key KEY] [--fault-rate 0.1] [--no-usage]

Serves POST /v1/chat/completions (streaming too), POST /v1/embeddings and POST /v1/rerank; `stub_replies` has what it answers.
GET /stats counts calls, tokens and the highest concurrency seen, by kind, and how often an extraction that had been
answered was asked again (the same prompt; equal texts count, so give documents different texts), how many different
extractions were answered (and in the last five seconds), and which calls are in flight; POST /reset clears the counts.
POST /faults sets failures for a test, as JSON (one or a list) with any of:
  {"match": "text that must occur in the prompt", "kind": "extract|keywords|summary|answer|embed|rerank", "status": 429,
   "times": 3, "delay_ms": 5000, "body": "raw reply instead of the normal one", "finish_reason": "length",
   "headers": {"Retry-After": "1"}, "page": "raw body of the whole response", "piece_ms": 50 (between pieces of a stream)}
None of them counts as an answer. DELETE /faults removes them (?name= those of that "name") and ends their delays.
`--fault-rate` fails that share of calls at random, with 429, 500 and 503 in turn. It listens on 127.0.0.1 only.
"""

import argparse
import asyncio
import base64
import hashlib
import json
import random
import struct
import time
from collections import Counter
from contextlib import nullcontext, suppress
from typing import Any

from aiohttp import web

from tests.fakes.stub_replies import GraphLimits, classify, embed, likeness, reply

RANDOM_STATUSES = (429, 500, 503)
PIECE_CHARS = 64
LATELY_SECONDS = 5


class Stub:
    """The server's state and handlers."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.limits = GraphLimits(args.entities, args.relations)
        self.gate: Any = asyncio.Semaphore(args.max_concurrent) if args.max_concurrent else nullcontext()
        self.random = random.Random(args.seed)
        self.faults: list[dict[str, Any]] = []
        self.removal = asyncio.Event()
        self.active: Counter[str] = Counter()
        self.clear()

    def clear(self) -> None:
        self.calls: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.extracted_at: list[float] = []
        self.peak = 0
        self.random_faults = 0
        self.broken_streams = 0
        self.last_answer: dict[str, Any] = {}

    def _fault(self, kind: str, text: str) -> dict[str, Any]:
        for fault in self.faults:
            if fault.get("times", 1) > 0 and fault.get("kind", kind) == kind and fault.get("match", "") in text:
                fault["times"] = fault.get("times", 1) - 1
                return fault
        if self.random.random() < self.args.fault_rate:
            self.random_faults += 1
            return {"status": RANDOM_STATUSES[self.random_faults % len(RANDOM_STATUSES)]}
        return {}

    async def _work(self, kind: str, text: str, delay_ms: float) -> web.Response | dict[str, Any]:
        """Count a call, take its time, and answer with a failure or with the fault to build into the reply."""
        self.calls[kind] += 1
        self.active[kind] += 1
        self.peak = max(self.peak, self.active.total())
        try:
            async with self.gate:
                fault = self._fault(kind, text)
                await asyncio.sleep(delay_ms / 1000)
                await self._delay(fault)
        finally:
            self.active[kind] -= 1
        if "page" in fault:
            return web.Response(text=fault["page"], content_type="application/json", status=fault.get("status", 200))
        if fault.get("status", 200) >= 400:
            error = {
                "error": {"message": fault.get("message", "injected fault"), "type": "stub", "code": fault.get("code")}
            }
            return web.json_response(error, status=fault["status"], headers=fault.get("headers"))
        if "body" not in fault:
            self.seen[f"{kind}:{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"] += 1
            if kind == "extract":
                self.extracted_at.append(time.monotonic())
        return fault

    async def _delay(self, fault: dict[str, Any]) -> None:
        """The delay of a failure, which ends when the failure is removed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(fault.get("delay_ms", 0) / 1000):
                while any(fault is other for other in self.faults):
                    await self.removal.wait()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        messages = body.get("messages", [])
        system = "\n".join(_text_of(message) for message in messages if message["role"] == "system")
        prompt = next((_text_of(message) for message in reversed(messages) if message["role"] == "user"), "")
        kind = classify(prompt)
        if kind == "answer":
            self.last_answer = body
        outcome = await self._work(kind, prompt, self.args.llm_ms)
        if isinstance(outcome, web.Response):
            return outcome
        json_mode = bool(body.get("response_format")) and kind != "keywords"
        text = outcome["body"] if "body" in outcome else reply(kind, prompt, json_mode, self.limits)
        usage = {"prompt_tokens": (len(prompt) + len(system)) // 4, "completion_tokens": len(text) // 4}
        usage["total_tokens"] = sum(usage.values())
        self.tokens.update({f"{kind}_in": usage["prompt_tokens"], f"{kind}_out": usage["completion_tokens"]})
        head = {"id": "stub", "created": int(time.time()), "model": body.get("model", "stub")}
        counted = {} if self.args.no_usage else {"usage": usage}
        if body.get("stream"):
            try:
                return await _stream(request, head, text, outcome, counted)
            except ConnectionError:
                self.broken_streams += 1
                raise
        message = {"role": "assistant", "content": text, "refusal": outcome.get("refusal")}
        choice = {"index": 0, "finish_reason": outcome.get("finish_reason", "stop"), "message": message}
        return web.json_response({**head, "object": "chat.completion", **counted, "choices": [choice]})

    async def embeddings(self, request: web.Request) -> web.Response:
        body = await request.json()
        inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
        outcome = await self._work("embed", "\n".join(map(str, inputs)), self.args.embed_ms)
        if isinstance(outcome, web.Response):
            return outcome
        dimension = outcome.get("dimension") or body.get("dimensions") or self.args.dim
        vectors: list[Any] = [embed(str(text), dimension) for text in inputs][: outcome.get("count")]
        if body.get("encoding_format") == "base64":
            vectors = [base64.b64encode(struct.pack(f"<{dimension}f", *vector)).decode() for vector in vectors]
        used = sum(len(str(text)) // 4 for text in inputs)
        self.tokens["embed_in"] += used
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        counted = {} if self.args.no_usage else {"usage": {"prompt_tokens": used, "total_tokens": used}}
        return web.json_response({"object": "list", "model": body.get("model", "stub"), "data": data, **counted})

    async def rerank(self, request: web.Request) -> web.Response:
        body = await request.json()
        outcome = await self._work("rerank", body["query"], self.args.llm_ms)
        if isinstance(outcome, web.Response):
            return outcome
        scores = [likeness(body["query"], document) for document in body["documents"]]
        order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))[: body.get("top_n")]
        used = sum(len(text) // 4 for text in (body["query"], *body["documents"]))
        self.tokens["rerank_in"] += used
        counted = {} if self.args.no_usage else {"usage": {"total_tokens": used}}
        results = [{"index": index, "relevance_score": scores[index]} for index in order]
        return web.json_response({"model": body["model"], "results": results, **counted})

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "stub", "object": "model"}]})

    async def stats(self, request: web.Request) -> web.Response:
        extractions = [count for key, count in self.seen.items() if key.startswith("extract:")]
        return web.json_response(
            {
                "calls": self.calls,
                "tokens": self.tokens,
                "peak_concurrency": self.peak,
                "repeated_extractions": sum(extractions) - len(extractions),
                "distinct_extractions": len(extractions),
                "extractions_lately": sum(moment > time.monotonic() - LATELY_SECONDS for moment in self.extracted_at),
                "in_flight": +self.active,
                "random_faults": self.random_faults,
                "broken_streams": self.broken_streams,
                "last_answer": self.last_answer,
            }
        )

    async def reset(self, request: web.Request) -> web.Response:
        self.clear()
        return web.json_response({"ok": True})

    async def set_faults(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.faults += body if isinstance(body, list) else [body]
        return web.json_response({"faults": self.faults})

    async def clear_faults(self, request: web.Request) -> web.Response:
        name = request.query.get("name")
        self.faults = [fault for fault in self.faults if name is not None and fault.get("name") != name]
        self.removal.set()
        self.removal = asyncio.Event()
        return web.json_response({"faults": self.faults})

    @web.middleware
    async def check_key(self, request: web.Request, handler: Any) -> web.StreamResponse:
        wanted = self.args.api_key
        if wanted and request.path.startswith("/v1/") and request.headers.get("Authorization") != f"Bearer {wanted}":
            sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
            message = f"Incorrect API key provided: {sent}."  # as providers do, which is why errors are cleaned
            return web.json_response({"error": {"message": message, "code": "invalid_api_key"}}, status=401)
        response: web.StreamResponse = await handler(request)
        return response


def _text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


async def _stream(
    request: web.Request, head: dict[str, Any], text: str, outcome: dict[str, Any], counted: dict[str, Any]
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    head = {**head, "object": "chat.completion.chunk"}
    for start in range(0, max(1, len(text)), PIECE_CHARS):
        delta = {"content": text[start : start + PIECE_CHARS]}
        event = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        await response.write(f"data: {json.dumps(event)}\n\n".encode())
        await asyncio.sleep(outcome.get("piece_ms", 0) / 1000)
    finish_reason = outcome.get("finish_reason", "stop")
    last = {**head, **counted, "choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}]}
    await response.write(f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n".encode())
    return response


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8089)
    parser.add_argument("--llm-ms", type=float, default=0, help="time each chat completion takes")
    parser.add_argument("--embed-ms", type=float, default=0, help="time each embedding call takes")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--max-concurrent", type=int, default=0, help="requests served at once; 0 for no limit")
    parser.add_argument("--entities", type=int, default=GraphLimits.entities, help="most entities an extraction gives")
    parser.add_argument(
        "--relations", type=int, default=GraphLimits.relations, help="most relations an extraction gives"
    )
    parser.add_argument("--api-key", help="refuse calls without this bearer key")
    parser.add_argument("--fault-rate", type=float, default=0, help="share of calls that fail at random")
    parser.add_argument("--seed", type=int, default=1, help="of the random failures")
    parser.add_argument("--no-usage", action="store_true", help="leave the usage out of replies, as some servers do")
    return parser.parse_args()


async def build(args: argparse.Namespace) -> web.Application:
    stub = Stub(args)
    app = web.Application(client_max_size=64 * 2**20, middlewares=[stub.check_key])
    app.add_routes(
        [
            web.post("/v1/chat/completions", stub.chat),
            web.post("/v1/embeddings", stub.embeddings),
            web.post("/v1/rerank", stub.rerank),
            web.get("/v1/models", stub.models),
            web.get("/stats", stub.stats),
            web.post("/reset", stub.reset),
            web.post("/faults", stub.set_faults),
            web.delete("/faults", stub.clear_faults),
        ]
    )
    return app


def main() -> None:
    args = parse_arguments()
    web.run_app(build(args), host="127.0.0.1", port=args.port, print=None, access_log=None, shutdown_timeout=1)


if __name__ == "__main__":
    main()
