"""What OpenAI's interface sends and expects, as far as it has a meaning here."""

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from app.api.fields import Body
from app.api.problems import validation_problem
from app.api.v1.openai.parameters import UnsupportedParameter, refuse_message_fields, refuse_parameters
from app.api.v1.queries.evidence import Citation
from app.api.v1.queries.routing_schemas import AddedTermRead, RoutingRead
from app.api.v1.queries.schemas import Usage
from app.api.v1.workspaces.schemas import EXAMPLE_ID as WORKSPACE_ID
from app.domain.answering.prompt import Conversation
from app.domain.answering.service import Wish
from app.providers.contract import ChatMessage, Sampling

MODEL_EXAMPLE = "handbooks:lazy-wide"
ROLES = ("system", "developer", "user", "assistant")
MAX_STOPS = 4


class Message(BaseModel):
    """A turn. Its content is text, or a list of parts of the type `text`."""

    model_config = ConfigDict(extra="allow")

    role: str = Field(description="`system`, `developer`, `user` or `assistant`.", max_length=40)
    content: str | list[dict[str, JsonValue]] | None = None

    def text(self, place: str) -> str:
        """Raises UnsupportedParameter for anything that is not text, and for further fields."""
        refuse_message_fields(self.model_extra or {}, place)
        if self.role not in ROLES:
            raise UnsupportedParameter(f"Messages of the role {self.role!r} are not supported.", param=f"{place}.role")
        if isinstance(self.content, str):
            return self.content
        texts = []
        for number, part in enumerate(self.content or ()):
            text = part.get("text")
            if part.get("type") != "text" or not isinstance(text, str):
                raise UnsupportedParameter(
                    f"Only text is read here; a part of the type {str(part.get('type'))[:40]!r} is not.",
                    param=f"{place}.content.{number}",
                )
            texts.append(text)
        return "\n".join(texts)


class StreamOptions(Body):
    """`include_usage`: the last chunk before the end has the usage."""

    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None


class ChatCompletionRequest(BaseModel):
    """A conversation. Parameters that are not listed here are refused, unless their value asks for nothing."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "model": MODEL_EXAMPLE,
                    "messages": [{"role": "user", "content": "How often are the seals of press 4 replaced?"}],
                },
                {
                    "model": MODEL_EXAMPLE,
                    "messages": [{"role": "user", "content": "Who supplies the seals?"}],
                    "stream": True,
                    "stream_options": {"include_usage": True},
                    "temperature": 0.2,
                    "trellis": {"top_k": 6, "footer": True},
                },
            ]
        },
    )

    model: str = Field(min_length=1, max_length=400, description="One of `GET /v1/openai/models`.")
    messages: list[Message] = Field(
        min_length=1, max_length=1000, description="The last message of the user is the question."
    )
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    stop: str | list[str] | None = Field(default=None, description=f"At most {MAX_STOPS} texts.")
    seed: int | None = None
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    trellis: dict[str, JsonValue] | None = Field(
        default=None,
        description="Fields of `POST …/query` but `query` and `mode`; and `footer`: true for the sources as text.",
    )

    def conversation(self) -> Conversation:
        """Raises UnsupportedParameter, also for parameters that are not supported, and ValidationFailed."""
        refuse_parameters(self.model_extra or {})
        texts = [message.text(f"messages.{number}") for number, message in enumerate(self.messages)]
        told = list(zip((message.role for message in self.messages), texts, strict=True))
        turns: list[ChatMessage] = []
        for role, text in told:
            if role == "user":
                turns.append(ChatMessage("user", text))
            elif role == "assistant":
                turns.append(ChatMessage("assistant", text))
        conversation = Conversation(tuple(text for role, text in told if role in ("system", "developer")), tuple(turns))
        if not any(turn.role == "user" for turn in turns):
            raise validation_problem(
                [{"loc": ("body", "messages"), "msg": "must hold a message of the user", "type": "missing"}]
            )
        return conversation

    def wish(self, most_tokens: int) -> Wish:
        """Raises ValidationFailed, also for an answer of more than `most_tokens`."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        if len(stop) > MAX_STOPS:
            raise _invalid("stop", f"must not hold more than {MAX_STOPS} texts")
        if None not in (self.max_tokens, self.max_completion_tokens) and self.max_tokens != self.max_completion_tokens:
            raise _invalid("max_tokens", "must not differ from max_completion_tokens")
        tokens = self.max_tokens or self.max_completion_tokens
        if tokens is not None and tokens > most_tokens:
            name = "max_tokens" if self.max_tokens else "max_completion_tokens"
            raise _invalid(name, f"must not be above {most_tokens}, the most that this installation has written")
        if self.stream_options is not None and not self.stream:
            raise _invalid("stream_options", "must not be given without stream")
        footer = (self.trellis or {}).get("footer", False)
        if not isinstance(footer, bool):
            raise _invalid("trellis.footer", "must be true or false")
        sampling = Sampling(
            self.temperature, self.top_p, stop or None, self.seed, self.presence_penalty, self.frequency_penalty
        )
        return Wish(sampling, tokens, footer)


def _invalid(field: str, message: str) -> Exception:
    return validation_problem([{"loc": ("body", *field.split(".")), "msg": message, "type": "value_error"}])


_MODEL: dict[str, Any] = {
    "id": MODEL_EXAMPLE, "object": "model", "created": 1796040000, "owned_by": "trellis", "name": "Handbooks (lazy-wide)",
    "workspace_id": WORKSPACE_ID, "mode": "lazy-wide", "chat_model": "my-chat",
}  # fmt: skip


class ModelRead(BaseModel):
    """A workspace and a mode, as OpenAI's interface lists models."""

    model_config = ConfigDict(json_schema_extra={"examples": [_MODEL]})

    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="When the workspace was created, in seconds of Unix time.")
    owned_by: Literal["trellis"] = "trellis"
    name: str = Field(description="The workspace's name and the mode, for people.")
    workspace_id: UUID
    mode: str
    chat_model: str | None = Field(description="Who writes the answers; null: nobody, and the model answers 409.")


class ModelList(BaseModel):
    """All of them; there are no pages in OpenAI's interface."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"object": "list", "data": [_MODEL]}]})

    object: Literal["list"] = "list"
    data: list[ModelRead]


class AnswerMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class Choice(BaseModel):
    index: int = 0
    message: AnswerMessage
    logprobs: None = None
    finish_reason: str


class TokenUsage(BaseModel):
    """Of the call that wrote the answer; what finding the evidence took is in `trellis`."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CacheRead(BaseModel):
    """Whether the evidence was remembered; entries are kept by workspace and corpus version."""

    hit: bool
    namespace: str
    corpus_version: int | None


class IndexRead(BaseModel):
    """The lazy index. `ms`: spent in it for this answer. Counts lag by up to a minute; null: above what is counted, or not
    counted in time."""

    ms: float
    passages: int | None
    concepts: int | None
    memberships: int | None
    llm_calls: int


class TrellisRead(BaseModel):
    """What an answer of `POST …/query` says beside its evidence, and for lazy modes how they came to it."""

    query_id: UUID
    workspace_id: UUID
    mode: str
    routing: RoutingRead | None = Field(description="Of `auto`: why it picked the mode; else null.")
    added_terms: list[AddedTermRead] = Field(description="Words that were looked for beside those of the question.")
    chat_model: str
    is_extractive: bool = Field(description="No language model wrote the answer: it quotes the documents.")
    timings_ms: dict[str, float]
    usage: Usage
    missing_legs: list[str] = Field(description="Legs of the search that were not done within `timeout_ms`.")
    withheld: int = Field(description="Pieces of evidence whose documents are not trusted now.")
    notes: list[str]
    experimental: bool = Field(description="True for lazy modes, whose budgets and ranking may still change.")
    cache: CacheRead | None = Field(default=None, description="Lazy modes and `baseline`.")
    index: IndexRead | None = Field(default=None, description="Lazy modes.")
    relevance_tests: int | None = Field(default=None, description="Lazy modes.")
    budgets: dict[str, Any] | None = Field(default=None, description="Lazy modes: limits and what was used of them.")


class ChatCompletion(BaseModel):
    """An answer. `citations` says what its marks `[1]`, `[2]` stand for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "chatcmpl-6a2f0c0e2d0e4f578f0c5f4f8c0f6f01",
                    "object": "chat.completion",
                    "created": 1796040000,
                    "model": MODEL_EXAMPLE,
                    "choices": [
                        {
                            "index": 0,
                            "message": {"role": "assistant", "content": "Every 2,000 hours [1].", "refusal": None},
                            "logprobs": None,
                            "finish_reason": "stop",
                        }
                    ],
                    "usage": {"prompt_tokens": 412, "completion_tokens": 9, "total_tokens": 421},
                    "citations": [],
                    "trellis": {
                        "query_id": "6a2f0c0e-2d0e-4f57-8f0c-5f4f8c0f6f01",
                        "workspace_id": WORKSPACE_ID,
                        "mode": "lazy-wide",
                        "routing": None,
                        "added_terms": [],
                        "chat_model": "my-chat",
                        "is_extractive": False,
                        "timings_ms": {"terms": 4.1, "graph": 9.8, "answer": 802.0, "total": 831.5},
                        "usage": {
                            "model_calls": 1, "embedding_calls": 1, "rerank_calls": 0, "tokens_in": 426, "tokens_out": 9,
                            "estimated_calls": 0, "sql_statements": 14, "cost": None,
                        },
                        "missing_legs": [],
                        "withheld": 0,
                        "notes": [],
                        "experimental": True,
                        "cache": {"hit": False, "namespace": "w_1f0f8f5a3c444d6e9a590a6c1f4b2d11", "corpus_version": 12},
                        "index": {"ms": 21.4, "passages": 214, "concepts": 1804, "memberships": 5210, "llm_calls": 0},
                        "relevance_tests": 96,
                        "budgets": {"seed_k": {"limit": 12, "used": 12}},
                    },
                }
            ]
        }
    )  # fmt: skip

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: TokenUsage
    citations: list[Citation]
    trellis: TrellisRead
