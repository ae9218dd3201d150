"""Chat over any OpenAI-compatible endpoint."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import openai

from app.providers.calling import calling
from app.providers.contract import (
    AS_THE_PROVIDER_LIKES,
    ChatMessage,
    ChatReply,
    ModelProfile,
    ModelRefused,
    ModelUnavailable,
    Purpose,
    Sampling,
)
from app.providers.limits import ModelLimits
from app.providers.openai_client import open_client
from app.providers.usage import counting_abandoned, record_call
from app.text.tokens import count_tokens

_TOKENS_PER_MESSAGE: Final = 4  # what chat formats add around each message


class _Usage(NamedTuple):
    """As the provider counts tokens; 0 where it does not tell."""

    asked: int
    said: int


class OpenAIChat:
    """A `ChatModel` that counts its usage and keeps to the limits of its profile."""

    def __init__(self, profile: ModelProfile, limits: ModelLimits) -> None:
        self.profile = profile
        self.limits = limits
        self._client = open_client(profile)
        self._has_json_mode = True
        self._limit_field = "max_tokens"

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        purpose: Purpose,
        json_mode: bool = False,
        max_tokens: int | None = None,
        sampling: Sampling = AS_THE_PROVIDER_LIKES,
    ) -> ChatReply:
        """Raises `ModelRefused` where the provider itself says that the model declined."""
        asked = _count(messages) if self.limits.counts_tokens else 0
        async with self.limits.call(asked):
            with (
                calling(self.profile, purpose) as facts,
                counting_abandoned(self.profile, purpose, lambda: _count(messages)),
            ):
                answer = await self._create(messages, json_mode, max_tokens, **_options(sampling))
                choice = self._choice(answer)
                message = choice["message"]
                reply = _with_usage(message.get("content") or "", _usage(answer), messages, choice.get("finish_reason"))
                facts |= {"gen_ai.usage.input_tokens": reply.tokens_in, "gen_ai.usage.output_tokens": reply.tokens_out}
        self._record(reply, asked, purpose)
        if message.get("refusal") or reply.finish_reason == "content_filter":
            raise ModelRefused(f"The model '{self.profile.name}' refused the task.", profile=self.profile.name)
        return reply

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        purpose: Purpose,
        max_tokens: int | None = None,
        sampling: Sampling = AS_THE_PROVIDER_LIKES,
        on_end: Callable[[ChatReply], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        asked = _count(messages) if self.limits.counts_tokens else 0
        pieces: list[str] = []
        usage: _Usage | None = None
        finish_reason: str | None = None
        is_open = False

        def said() -> ChatReply:
            return _with_usage("".join(pieces), usage, messages, finish_reason)

        options = {**_options(sampling), "stream": True, "stream_options": {"include_usage": True}}
        try:
            async with self.limits.call(asked):
                with calling(self.profile, purpose):
                    with counting_abandoned(self.profile, purpose, lambda: _count(messages)):
                        chunks = await self._create(messages, False, max_tokens, **options)
                    is_open = True
                    # Closed with this generator: a provider goes on writing for whoever does not hang up.
                    async with chunks:
                        async for chunk in chunks:
                            if chunk.usage:
                                usage = _Usage(chunk.usage.prompt_tokens or 0, chunk.usage.completion_tokens or 0)
                            for choice in chunk.choices:
                                finish_reason = choice.finish_reason or finish_reason
                                if choice.delta.content:
                                    pieces.append(choice.delta.content)
                                    yield choice.delta.content
        finally:
            # Whoever stops listening has had what was said so far, and the provider may bill it.
            if is_open:
                self._record(said(), asked, purpose)
        if on_end is not None:
            on_end(said())

    async def aclose(self) -> None:
        await self._client.close()

    async def _create(
        self, messages: Sequence[ChatMessage], json_mode: bool, max_tokens: int | None, **options: Any
    ) -> Any:
        """The answer's JSON, or the SDK's stream; asked again where the server does not know one of the request's fields."""
        while True:
            request: dict[str, Any] = {"model": self.profile.model, "messages": _as_json(messages), **options}
            if max_tokens is not None:
                request[self._limit_field] = max_tokens
            if json_mode and self._has_json_mode:
                request["response_format"] = {"type": "json_object"}
            try:
                if options.get("stream"):
                    return await self._client.chat.completions.create(**request)
                # As plain JSON: the SDK's own method takes longer to look at what is sent and comes than all else of a call.
                return await self._client.post("/chat/completions", cast_to=object, body=request)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if not self._adapt(str(error.body), request):
                    raise

    def _adapt(self, complaint: str, request: dict[str, Any]) -> bool:
        """Remember a field that the server refuses; False if the complaint is about something else."""
        if "response_format" in request and "response_format" in complaint:
            # The prompt asks for JSON too, and the answer is checked anyway.
            self._has_json_mode = False
            return True
        if "max_tokens" in request and "max_completion_tokens" in complaint:
            self._limit_field = "max_completion_tokens"
            return True
        return False

    def _choice(self, answer: Any) -> Mapping[str, Any]:
        choices = answer.get("choices") if isinstance(answer, Mapping) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
            raise ModelUnavailable(
                f"The model '{self.profile.name}' sent an answer without content.", profile=self.profile.name
            )
        return choice

    def _record(self, reply: ChatReply, asked: int, purpose: Purpose) -> None:
        self.limits.owe(reply.tokens_out + max(0, reply.tokens_in - asked))
        record_call(
            self.profile,
            purpose,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            is_estimated=reply.is_estimated,
        )


def _options(sampling: Sampling) -> Mapping[str, Any]:
    """Fields of the request for what is set."""
    given = {name: value for name, value in asdict(sampling).items() if value is not None}
    return given | {"stop": list(sampling.stop)} if sampling.stop is not None else given


def _count(messages: Sequence[ChatMessage]) -> int:
    return sum(count_tokens(message.content) + _TOKENS_PER_MESSAGE for message in messages)


def _as_json(messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _usage(answer: Mapping[str, Any]) -> _Usage | None:
    told = answer.get("usage")
    if not isinstance(told, Mapping):
        return None
    return _Usage(told.get("prompt_tokens") or 0, told.get("completion_tokens") or 0)


def _with_usage(
    text: str, usage: _Usage | None, messages: Sequence[ChatMessage], finish_reason: str | None
) -> ChatReply:
    if usage is None or not usage.asked:
        return ChatReply(text, _count(messages), count_tokens(text), is_estimated=True, finish_reason=finish_reason)
    return ChatReply(text, usage.asked, usage.said, is_estimated=False, finish_reason=finish_reason)
