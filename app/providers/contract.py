"""What the rest of Trellis knows of a model: a profile to reach it by, and two protocols to use it through."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt
from pydantic import SecretStr

from app.errors import Unavailable, UpstreamRefused

Vectors = npt.NDArray[np.float32]
EmbeddingRole = Literal["query", "document"]
ModelRole = Literal["chat", "embedding", "rerank"]
Provider = Literal["openai", "offline"]


class Purpose(StrEnum):
    """Why a model was called: usage is counted by it."""

    EXTRACT = "extract"
    GLEAN = "glean"
    KEYWORDS = "keywords"
    SUMMARY = "summary"
    ANSWER = "answer"
    EXPAND = "expand"
    REPORT = "report"
    CHECK = "check"
    EMBED_DOCUMENT = "embed_document"
    EMBED_QUERY = "embed_query"
    RERANK = "rerank"

    @property
    def is_embedding(self) -> bool:
        return self in (Purpose.EMBED_DOCUMENT, Purpose.EMBED_QUERY)


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How to reach one model and how hard it may be driven, over all processes together."""

    id: UUID
    name: str
    role: ModelRole
    provider: Provider
    model: str
    base_url: str | None = None
    api_key: SecretStr | None = field(default=None, repr=False)
    dimension: int | None = None  # embeddings only
    table_suffix: str | None = None  # embeddings only: what the names of its vector tables end in
    max_concurrency: int = 8
    tokens_per_minute: int | None = None
    timeout_seconds: float = 120.0
    max_retries: int = 4

    @property
    def is_offline(self) -> bool:
        """Whether answers come from rules and small shipped models, which every answer built on them must say."""
        return self.provider == "offline"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatReply:
    text: str
    tokens_in: int
    tokens_out: int
    is_estimated: bool  # the provider sent no usage, so the tokens were counted here
    finish_reason: str | None  # "stop", "length", "content_filter", ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is drawn, passed on as it is; None leaves it to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


AS_THE_PROVIDER_LIKES: Final = Sampling()


class ChatModel(Protocol):
    """A chat model. Raises `ModelUnavailable` where a retry may help and `ModelRejected` where it cannot."""

    @property
    def profile(self) -> ModelProfile: ...

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        purpose: Purpose,
        json_mode: bool = False,
        max_tokens: int | None = None,
        sampling: Sampling = AS_THE_PROVIDER_LIKES,
    ) -> ChatReply: ...

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        purpose: Purpose,
        max_tokens: int | None = None,
        sampling: Sampling = AS_THE_PROVIDER_LIKES,
        on_end: Callable[[ChatReply], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        """The pieces of the reply as they arrive; `on_end` is told the whole of it. Closing it ends the call."""
        ...

    async def aclose(self) -> None: ...


class EmbeddingModel(Protocol):
    """An embedding model. Raises as `ChatModel` does, and `EmbeddingMismatch` for vectors of another shape than agreed."""

    @property
    def profile(self) -> ModelProfile: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, role: EmbeddingRole) -> Vectors:
        """Float32 of shape (len(texts), dimension), each row of length 1; an empty text gets a row of zeros."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document's place among those sent (from 0), and how well it answers; scores of one answer can be compared."""

    index: int
    score: float


class RerankModel(Protocol):
    """A reranker. Raises as `ChatModel` does, and `ModelNonsense` for a ranking that cannot be used."""

    @property
    def profile(self) -> ModelProfile: ...

    async def rerank(self, query: str, documents: Sequence[str], *, top_n: int) -> list[Ranked]:
        """The `top_n` best of `documents` (all of them, if there are fewer), best first."""
        ...

    async def aclose(self) -> None: ...


class ModelUnavailable(Unavailable):
    """The provider did not answer, or answered that it cannot now; `status` is its HTTP status where there was one."""

    code = "model_unavailable"
    title = "The model is not available"


class ModelRejected(UpstreamRefused):
    """The provider refused the request for good: a bad key, an unknown model, a request it does not understand."""

    code = "model_rejected"
    title = "The model's provider refused the request"


class EmbeddingMismatch(UpstreamRefused):
    """The vectors are not as many or not as long as agreed; `expected` and `received` are facts."""

    code = "embedding_mismatch"
    title = "The embedding model gave vectors of another shape"


class ModelRefused(UpstreamRefused):
    """The model declined to do the task."""

    code = "model_refused"
    title = "The model refused the task"


class ModelCutOff(UpstreamRefused):
    """The answer ended at the model's output limit, so part of it is missing."""

    code = "model_cut_off"
    title = "The model's answer was cut off"


class ModelNonsense(UpstreamRefused):
    """The answer is not in the format that was asked for, even after cleaning."""

    code = "model_nonsense"
    title = "The model's answer cannot be used"
