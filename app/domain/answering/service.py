"""Writes an answer: asks the workspace as any query does, and puts the evidence before the workspace's chat model."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict, dataclass

from app.db.base import TenantId
from app.db.session import Database
from app.domain.answering.errors import AnswerTimedOut, ChatModelMissing
from app.domain.answering.extractive import extractive_answer
from app.domain.answering.names import NamedWorkspace
from app.domain.answering.prompt import Conversation, cited_numbers, messages_for
from app.domain.limits.repository import LimitsRepository
from app.domain.queries.context import passage_block
from app.domain.queries.planning import Question
from app.domain.queries.service import Answer, QueryService, refuse_spent
from app.domain.usage.booking import Booking, book_query
from app.domain.workspaces.opening import WorkspaceOpener
from app.domain.workspaces.repository import WorkspaceRepository
from app.providers.contract import ChatMessage, ChatModel, ChatReply, Purpose, Sampling
from app.providers.usage import UsageMeter, meter_usage, record_call
from app.retrieval.contract import EngineWorkspace, PassageEvidence
from app.text.tokens import count_tokens

Say = Callable[[str], Awaitable[None]]
# Of an answer that is there as a whole, as a stream gives it out.
PIECE_CHARS = 64


@dataclass(frozen=True)
class Wish:
    """How the answer should be written. `has_footer`: the sources stand below it as text."""

    sampling: Sampling
    max_tokens: int | None
    has_footer: bool


class AnswerService:
    def __init__(
        self, database: Database, queries: QueryService, workspaces: WorkspaceOpener, *, timeout_seconds: float
    ) -> None:
        self._database = database
        self._queries = queries
        self._workspaces = workspaces
        self._timeout_seconds = timeout_seconds

    async def find(
        self, tenant_id: TenantId, workspace: NamedWorkspace, question: Question, conversation: Conversation, wish: Wish
    ) -> "Writing":
        """The evidence, and the answer that can now be written. Raises as `QueryService.ask` does, and ChatModelMissing."""
        async with self._database.tenant(tenant_id) as session:
            record = await WorkspaceRepository(session).get(workspace.id)
            standing = await LimitsRepository(session).standing()
        opened = await self._workspaces.engine_workspace(record)
        if opened.chat is None:
            raise ChatModelMissing(f"The workspace {workspace.name!r} has no chat model to answer with.")
        refuse_spent(standing, opened.chat.profile)
        answer = await self._queries.ask(tenant_id, workspace.id, question)
        return Writing(self._database, opened, opened.chat, answer, conversation, wish, self._timeout_seconds)


class Writing:
    """One answer. After `whole` or `stream`, `usage`, `cost`, `timings_ms` and `finish_reason` say what it took."""

    def __init__(
        self,
        database: Database,
        workspace: EngineWorkspace,
        chat: ChatModel,
        answer: Answer,
        conversation: Conversation,
        wish: Wish,
        timeout_seconds: float,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self.answer = answer
        self.usage = UsageMeter()
        self.finish_reason = "stop"
        self._booking = Booking()
        self._database = database
        self.workspace = workspace
        self.timings_ms: dict[str, float] = {}
        self._chat = chat
        self._conversation = conversation
        self._wish = wish
        self._said: list[str] = []

    @property
    def is_extractive(self) -> bool:
        """Whether no language model writes it."""
        return self._chat.profile.is_offline

    @property
    def chat_model(self) -> str:
        return self._chat.profile.name

    @property
    def cost(self) -> float | None:
        return self._booking.cost

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the wish was not heeded, and what was not recorded."""
        return self._unheeded() + self._booking.notes

    def _unheeded(self) -> tuple[str, ...]:
        wish = {**asdict(self._wish.sampling), "max_tokens": self._wish.max_tokens}
        unused = [name for name, value in wish.items() if value is not None]
        if not unused or not self.is_extractive:
            return ()
        return (f"The offline model only quotes, so these had no effect: {', '.join(unused)}.",)

    async def whole(self) -> str:
        """The answer with its footer. Raises what the chat model raises, and AnswerTimedOut."""
        async with self._booked():
            if self.is_extractive:
                text = self._quote()
            else:
                reply = await self._chat.complete(
                    self._messages(), purpose=Purpose.ANSWER,
                    max_tokens=self._wish.max_tokens, sampling=self._wish.sampling,
                )  # fmt: skip
                self._end(reply)
                text = reply.text
        return text + self._footer(text)

    async def stream(self, say: Say) -> None:
        """Hand `say` the pieces as they come. Whoever cancels this ends the call of the model; what was said is booked.

        Raises as `whole` does.
        """
        async with self._booked():
            if self.is_extractive:
                text = self._quote()
                for start in range(0, len(text), PIECE_CHARS):
                    await self._say(say, text[start : start + PIECE_CHARS])
            else:
                pieces = self._chat.stream(
                    self._messages(), purpose=Purpose.ANSWER, max_tokens=self._wish.max_tokens,
                    sampling=self._wish.sampling, on_end=self._end,
                )  # fmt: skip
                async with aclosing(pieces):
                    async for piece in pieces:
                        await self._say(say, piece)
        if footer := self._footer("".join(self._said)):
            await say(footer)

    async def _say(self, say: Say, piece: str) -> None:
        self._said.append(piece)
        await say(piece)

    def _messages(self) -> list[ChatMessage]:
        return messages_for(self._conversation, self.answer.context.text, self.answer.query_id)

    def _quote(self) -> str:
        text = extractive_answer(self._conversation.question, self.answer.context.cited)
        read = sum(count_tokens(message.content) for message in self._messages())
        record_call(
            self._chat.profile, Purpose.ANSWER, tokens_in=read, tokens_out=count_tokens(text), is_estimated=False
        )
        return text

    def _end(self, reply: ChatReply) -> None:
        self.finish_reason = reply.finish_reason or "stop"

    @asynccontextmanager
    async def _booked(self) -> AsyncIterator[None]:
        """What the block asks of models is in `usage`, and in the ledger however it ends. It has a time limit, or a model
        that trickles would keep its slot for ever."""
        started = time.perf_counter()
        limit = asyncio.timeout(self._timeout_seconds)
        try:
            with meter_usage(self.usage):
                async with limit:
                    yield
        except TimeoutError:
            if limit.expired():
                raise AnswerTimedOut(f"The model had {self._timeout_seconds:g} seconds to answer.") from None
            raise
        finally:
            spent = (time.perf_counter() - started) * 1000
            self.timings_ms = {"answer": spent, "total": self.answer.timings_ms["total"] + spent}
            ref, query_id = self.workspace.ref, self.answer.query_id
            self._booking = await book_query(self._database, ref.tenant_id, ref.workspace_id, query_id, self.usage)

    def _footer(self, text: str) -> str:
        cited = self.answer.context.cited
        if not self._wish.has_footer or not cited:
            return ""
        return footer(cited, cited_numbers(text, len(cited)))


def footer(cited: Sequence[PassageEvidence], used: Sequence[int]) -> str:
    """The sources that an answer cites; all that it was given where it cites none."""
    head = "Sources:" if used else "Sources that were given (the answer cites none):"
    lines = [passage_block(cited[number - 1], number).partition("\n")[0] for number in used or range(1, len(cited) + 1)]
    return "\n\n" + "\n".join([head, *lines])
