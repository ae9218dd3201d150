"""LightRAG's model functions over our models: plain closures, for LightRAG deep-copies what it is given (facts F12).

What a call was for is told to the model, so that usage is counted by purpose; extraction answers are checked before
LightRAG may keep them in its cache.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from lightrag.utils import EmbeddingFunc

from app.errors import AppError, Unavailable
from app.providers.answers import check_extraction, check_gleaning, check_text
from app.providers.contract import ChatMessage, ChatModel, EmbeddingModel, Purpose, Vectors
from app.retrieval.lightrag import scope
from app.retrieval.lightrag.names import shorten_names

Complete = Callable[..., Awaitable[str]]
KeepNames = Callable[[Mapping[str, str]], Awaitable[None]]

_failures: ContextVar[list[AppError] | None] = ContextVar("engine_model_failures", default=None)


class ChatModelMissing(Unavailable):
    """The workspace's graph needs a chat model and the workspace names none."""

    code = "chat_model_missing"
    title = "No chat model"


@contextmanager
def noted_failures() -> Iterator[list[AppError]]:
    """Errors of our models inside, which LightRAG wraps, logs or swallows."""
    found: list[AppError] = []
    token = _failures.set(found)
    try:
        yield found
    finally:
        _failures.reset(token)


def chat_functions(chat: ChatModel | None, keep_names: KeepNames) -> dict[str, Complete]:
    """One function for each of LightRAG's roles. Whole names that an answer's short ones stand for go to `keep_names`."""

    async def extract(
        prompt: str, system_prompt: str | None = None, history_messages: list[dict[str, str]] | None = None, **_: Any
    ) -> str:
        # LightRAG asks for extraction with a system prompt, for gleaning with a history too, for summaries with neither.
        purpose = Purpose.GLEAN if history_messages else Purpose.EXTRACT if system_prompt else Purpose.SUMMARY
        answer = await _ask(chat, purpose, prompt, system_prompt, history_messages)
        if purpose is Purpose.SUMMARY:
            return answer
        short, whole = shorten_names(answer)
        if whole:
            with scope.calling():
                await keep_names(whole)
        return short

    async def keywords(prompt: str, system_prompt: str | None = None, **_: Any) -> str:
        return await _ask(chat, Purpose.KEYWORDS, prompt, system_prompt, None)

    async def answer(prompt: str, system_prompt: str | None = None, **_: Any) -> str:
        return await _ask(chat, Purpose.ANSWER, prompt, system_prompt, None)

    return {"extract": extract, "keyword": keywords, "query": answer, "vlm": answer}


async def _ask(
    chat: ChatModel | None, purpose: Purpose, prompt: str, system: str | None, history: Sequence[dict[str, str]] | None
) -> str:
    with _noting():
        if chat is None:
            raise ChatModelMissing("the workspace has no chat model, which its knowledge graph needs")
        messages = [ChatMessage("system", system)] if system else []
        messages += [ChatMessage(_role(line["role"]), line["content"]) for line in history or ()]
        messages.append(ChatMessage("user", prompt))
        with scope.calling():
            reply = await chat.complete(messages, purpose=purpose, json_mode=purpose is Purpose.KEYWORDS)
        if purpose in (Purpose.EXTRACT, Purpose.GLEAN):
            check = check_extraction if purpose is Purpose.EXTRACT else check_gleaning
            return check(reply.text, reply.finish_reason, json_mode=False)
        if purpose is Purpose.SUMMARY:
            return check_text(reply.text, reply.finish_reason)
        return reply.text


def _role(name: str) -> Any:
    return name if name in ("system", "user", "assistant") else "user"


def embedding_function(embedding: EmbeddingModel, suffix: str) -> EmbeddingFunc:
    """LightRAG's embedding function; `suffix` is the ending of the vector tables that it derives the names of."""

    async def embed(texts: list[str], context: str = "document", **_: Any) -> Vectors:
        with _noting(), scope.calling():
            return await embedding.embed(texts, role="query" if context == "query" else "document")

    return EmbeddingFunc(
        embedding_dim=embedding.dimension,
        func=embed,
        # No limit here: LightRAG would split our chunks by it. What is too long for the model, the model's client cuts.
        max_token_size=None,
        model_name=suffix.removesuffix(f"_{embedding.dimension}d"),
        supports_asymmetric=True,
    )


@contextmanager
def _noting() -> Iterator[None]:
    try:
        yield
    except AppError as error:
        found = _failures.get()
        if found is not None:
            found.append(error)
        raise
