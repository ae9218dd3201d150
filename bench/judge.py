"""Lets a model say how good the evidence of a mode is, beside the figures that need none.

The model answers the question from the first passages, then marks its answer: is each statement of it in the passages
(faithfulness), and does it answer the question (relevance)? A reply that cannot be read is left out and counted, so a
figure comes with the part of the questions that it stands on.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np
from redis.asyncio import Redis

from app.db.session import Database
from app.domain.models.service import ModelProfiles
from app.errors import AppError
from app.providers.contract import ChatMessage, ChatModel, Purpose
from app.providers.factory import ModelFactory
from app.retrieval.contract import PassageEvidence
from app.settings import Settings

JUDGED_PASSAGES = 5
_AT_ONCE = 8
_MAX_TOKENS = 300
_ANSWER = """Answer the question from the passages alone, in at most three sentences. Say so if they do not tell.

Passages:
{passages}

Question: {question}"""
_MARK = """Mark an answer that was given from passages. Reply with JSON alone: {{"faithfulness": x, "relevance": y}}, both from 0 to 1.
faithfulness: the part of the answer's statements that the passages bear out. relevance: how well it answers the question.

Passages:
{passages}

Question: {question}

Answer: {answer}"""


@dataclass(frozen=True)
class Marks:
    """From 0 to 1."""

    faithfulness: float
    relevance: float


@dataclass(frozen=True)
class Judgement:
    """The marks of a mode on a set, those of replies that could be read, and out of how many questions."""

    marks: Sequence[Marks]
    asked: int

    @property
    def coverage(self) -> float:
        return len(self.marks) / self.asked if self.asked else 0.0

    def mean(self, name: str) -> float | None:
        """Of "faithfulness" or "relevance"; None where no reply could be read."""
        return float(np.mean([getattr(found, name) for found in self.marks])) if self.marks else None


class Judge:
    """Marks evidence with a chat model. A call that fails counts as a reply that cannot be read."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._places = asyncio.Semaphore(_AT_ONCE)

    @property
    def name(self) -> str:
        return self._model.profile.name

    async def judge(self, asked: Sequence[tuple[str, Sequence[PassageEvidence]]]) -> Judgement:
        """For questions with the passages that a mode found for each."""
        found = await asyncio.gather(*(self._marks(question, passages) for question, passages in asked))
        return Judgement([marks for marks in found if marks is not None], len(asked))

    async def _marks(self, question: str, passages: Sequence[PassageEvidence]) -> Marks | None:
        texts = "\n\n".join(f"[{n}] {p.title}\n{p.text}" for n, p in enumerate(passages[:JUDGED_PASSAGES], start=1))
        async with self._places:
            try:
                answer = await self._ask(_ANSWER.format(passages=texts, question=question), Purpose.ANSWER)
                reply = await self._ask(
                    _MARK.format(passages=texts, question=question, answer=answer), Purpose.CHECK, json_mode=True
                )
            except AppError:
                return None
        return read_marks(reply)

    async def _ask(self, prompt: str, purpose: Purpose, *, json_mode: bool = False) -> str:
        message = ChatMessage("user", prompt)
        reply = await self._model.complete([message], purpose=purpose, json_mode=json_mode, max_tokens=_MAX_TOKENS)
        return reply.text


def read_marks(reply: str) -> Marks | None:
    """The marks in a reply, which may stand among prose; None unless both are there and from 0 to 1."""
    match = re.search(r"\{[^{}]*\}", reply)
    try:
        found = json.loads(match.group()) if match else {}
    except json.JSONDecodeError:
        return None
    values = [found.get(name) for name in ("faithfulness", "relevance")]
    marks = [float(value) for value in values if isinstance(value, int | float) and 0 <= value <= 1]
    return Marks(*marks) if len(marks) == len(values) else None


@asynccontextmanager
async def open_judge(profile: str) -> AsyncIterator[Judge]:
    """A judge by a chat profile of the installation that TRELLIS_* settings name. Raises `ModelNotFound`."""
    settings = Settings()
    database = Database(settings.database_url.get_secret_value(), pool_size=1)
    redis = Redis.from_url(settings.redis_url.get_secret_value())
    models = ModelFactory(redis)
    try:
        found = await ModelProfiles(database, settings.secret_key).get_by_name(profile)
        yield Judge(models.chat(found))
    finally:
        await models.aclose()
        await redis.aclose()
        await database.close()
