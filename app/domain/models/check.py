"""Tries a model the way Trellis will use it and says what works."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from pydantic import SecretStr

from app.errors import AppError
from app.providers.answers import check_extraction, check_keywords
from app.providers.contract import (
    ChatMessage,
    ChatModel,
    EmbeddingModel,
    ModelProfile,
    ModelRejected,
    Purpose,
    RerankModel,
)
from app.providers.factory import ModelFactory
from app.providers.usage import meter_usage

Outcome = Literal["passed", "warning", "failed", "skipped"]
_TEXT: Final = "Ada Lovelace wrote about the Analytical Engine that Charles Babbage had designed in London."
_QUESTION: Final = "Who designed the Analytical Engine in London?"
_EXTRACTION: Final = f"""---Task---
Extract entities and relationships from the `---Input Text---` section below.

---Instructions---
1. Write one record a line: `entity<|#|>name<|#|>type<|#|>description` for each entity, then
`relation<|#|>source<|#|>target<|#|>keywords<|#|>description` for each relationship.
2. Write only the records, and `<|COMPLETE|>` as the last line.

---Input Text---
```
{_TEXT}
```

---Output---
"""
_KEYWORDS: Final = f"""Answer with one JSON object that holds two arrays of strings, "high_level_keywords" for the themes of the
user's query and "low_level_keywords" for the names in it.

---Real Data---
User Query: {_QUESTION}

---Output---
"""
_WRONG_KEY: Final = SecretStr("trellis-check-this-key-is-wrong")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one thing went; `detail` is a sentence for the operator and holds no secret."""

    check: str
    outcome: Outcome
    detail: str
    milliseconds: float


_Trial = Callable[[], Awaitable[tuple[Outcome, str]]]


async def check_model(profile: ModelProfile, factory: ModelFactory) -> list[Verdict]:
    """Try a profile; costs a handful of calls. Errors become verdicts, none is raised."""
    if profile.role == "chat":
        chat = factory.chat(profile)
        trials: dict[str, _Trial] = {
            "extraction": lambda: _extraction(chat),
            "keywords": lambda: _keywords(chat),
            "streaming": lambda: _streaming(chat),
            "usage": lambda: _usage(profile, lambda: _say_yes(chat)),
            "bad key": lambda: _bad_key(profile, factory),
        }
    elif profile.role == "embedding":
        embedding = factory.embedding(profile)
        trials = {
            "embedding": lambda: _embedding(embedding),
            "usage": lambda: _usage(profile, lambda: embedding.embed([_TEXT], role="document")),
            "bad key": lambda: _bad_key(profile, factory),
        }
    else:
        reranker = factory.rerank(profile)
        trials = {
            "rerank": lambda: _rerank(reranker),
            "usage": lambda: _usage(profile, lambda: reranker.rerank(_QUESTION, [_TEXT], top_n=1)),
            "bad key": lambda: _bad_key(profile, factory),
        }
    return [await _verdict(name, trial) for name, trial in trials.items()]


async def _verdict(name: str, trial: _Trial) -> Verdict:
    started = time.perf_counter()
    try:
        outcome, detail = await trial()
    except AppError as error:
        outcome, detail = "failed", f"{error.detail} ({error.reason})"
    return Verdict(name, outcome, detail, (time.perf_counter() - started) * 1000)


async def _extraction(chat: ChatModel) -> tuple[Outcome, str]:
    reply = await chat.complete([ChatMessage("user", _EXTRACTION)], purpose=Purpose.CHECK, max_tokens=2_000)
    records = check_extraction(reply.text, reply.finish_reason, json_mode=False).splitlines()
    entities = sum(record.startswith("entity") for record in records)
    relations = sum(record.startswith("relation") for record in records)
    if not entities or not relations:
        return "failed", f"{entities} entities and {relations} relations in a sentence with three of each."
    return "passed", f"{entities} entities and {relations} relations."


async def _keywords(chat: ChatModel) -> tuple[Outcome, str]:
    reply = await chat.complete(
        [ChatMessage("user", _KEYWORDS)], purpose=Purpose.CHECK, json_mode=True, max_tokens=1_000
    )
    if "low_level_keywords" not in reply.text:
        return "failed", "No JSON object with keywords in the answer."
    return "passed", ", ".join(check_keywords(reply.text, _QUESTION).low)


async def _streaming(chat: ChatModel) -> tuple[Outcome, str]:
    pieces = [
        piece
        async for piece in chat.stream(
            [ChatMessage("user", "Count from one to twenty in words.")], purpose=Purpose.CHECK, max_tokens=1_000
        )
    ]
    if not "".join(pieces).strip():
        return "failed", "The stream was empty."
    return ("passed" if len(pieces) > 1 else "warning"), f"{len(pieces)} pieces."


async def _say_yes(chat: ChatModel) -> None:
    await chat.complete([ChatMessage("user", "Answer with the word yes.")], purpose=Purpose.CHECK, max_tokens=500)


async def _usage(profile: ModelProfile, call: Callable[[], Awaitable[object]]) -> tuple[Outcome, str]:
    with meter_usage() as meter:
        await call()
    if any(total.is_estimated for total in meter.totals.values()):
        return "warning", "The endpoint reports no usage, so tokens are counted here."
    return "passed", f"{meter.tokens_in} tokens in, {meter.tokens_out} out, as {profile.provider} counts."


async def _embedding(embedding: EmbeddingModel) -> tuple[Outcome, str]:
    vectors = await embedding.embed([_TEXT, "Der Hafen friert im Winter zu."], role="document")
    question = await embedding.embed([_QUESTION], role="query")
    near, far = (float(np.dot(vector, question[0])) for vector in vectors)
    detail = f"{embedding.dimension} dimensions; cosine {near:.2f} to a related text, {far:.2f} to an unrelated one."
    return ("passed" if near > far else "failed"), detail


async def _rerank(reranker: RerankModel) -> tuple[Outcome, str]:
    best, other = await reranker.rerank(_QUESTION, ["Der Hafen friert im Winter zu.", _TEXT], top_n=2)
    detail = f"{best.score:.3g} for the text that answers, {other.score:.3g} for another."
    return ("passed", detail) if best.index == 1 else ("failed", "The text that answers came second.")


async def _bad_key(profile: ModelProfile, factory: ModelFactory) -> tuple[Outcome, str]:
    if profile.is_offline:
        return "skipped", "The offline pair has no key."
    wrong = replace(profile, api_key=_WRONG_KEY, max_retries=0)
    try:
        if profile.role == "chat":
            await _say_yes(factory.chat(wrong))
        elif profile.role == "rerank":
            await factory.rerank(wrong).rerank(_QUESTION, [_TEXT], top_n=1)
        else:
            await factory.embedding(wrong).embed(["yes"], role="query")
    except ModelRejected as error:
        return "passed", f"A wrong key is refused with {error.facts.get('status')}."
    return "warning", "The endpoint takes any key: keep it off the open network."
