"""Embeddings over any OpenAI-compatible endpoint."""

import asyncio
import base64
from collections.abc import Iterator, Sequence
from json import JSONDecodeError
from typing import Any, Final

import numpy as np

from app.errors import Invalid
from app.providers.calling import calling
from app.providers.contract import EmbeddingMismatch, EmbeddingRole, ModelProfile, ModelUnavailable, Purpose, Vectors
from app.providers.limits import ModelLimits
from app.providers.openai_client import open_client
from app.providers.usage import counting_abandoned, record_call
from app.text.tokens import count_tokens

# Self-hosted servers refuse larger batches by default (text-embeddings-inference: 32 texts).
_MAX_TEXTS: Final = 32
_MAX_TOKENS: Final = 50_000


class OpenAIEmbeddings:
    """An `EmbeddingModel` that checks what it is sent, counts its usage and keeps to the limits of its profile."""

    def __init__(self, profile: ModelProfile, limits: ModelLimits) -> None:
        if not profile.dimension:
            raise Invalid(f"The embedding profile '{profile.name}' has no dimension.", code="dimension_missing")
        self.profile = profile
        self.limits = limits
        self._dimension = profile.dimension
        self._client = open_client(profile)

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str], *, role: EmbeddingRole) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        purpose = Purpose.EMBED_QUERY if role == "query" else Purpose.EMBED_DOCUMENT
        tasks = [
            asyncio.ensure_future(self._embed_batch(texts, rows, tokens, purpose, vectors))
            for rows, tokens in _batches(texts, is_exact=self.limits.counts_tokens)
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            # After one batch failed the others would only cost money.
            for task in tasks:
                task.cancel()
        return vectors

    async def aclose(self) -> None:
        await self._client.close()

    async def _embed_batch(
        self, texts: Sequence[str], rows: list[int], tokens: int, purpose: Purpose, vectors: Vectors
    ) -> None:
        async with self.limits.call(tokens):
            with (
                calling(self.profile, purpose),
                counting_abandoned(self.profile, purpose, lambda: sum(count_tokens(texts[row]) for row in rows)),
            ):
                found, used = await self._create([texts[row] for row in rows])
        record_call(
            self.profile,
            purpose,
            tokens_in=used or sum(count_tokens(texts[row]) for row in rows),
            tokens_out=0,
            is_estimated=not used,
        )
        vectors[rows] = self._checked(found, len(rows))

    async def _create(self, texts: list[str]) -> tuple[list[Vectors], int]:
        """The vectors of a response in the order of the texts, and the tokens sent; 0 by servers that do not tell."""
        body = {"model": self.profile.model, "input": texts, "encoding_format": "base64"}
        try:
            # As plain JSON: the SDK's own method makes an object of each vector, and of each number before that.
            answer: Any = await self._client.post("/embeddings", cast_to=object, body=body)
            found = sorted(answer["data"], key=lambda item: item["index"])
            rows = [_numbers(item["embedding"]) for item in found]
            if not rows:
                raise ValueError("no vectors")
            return rows, int((answer.get("usage") or {}).get("prompt_tokens") or 0)
        except JSONDecodeError:
            raise
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            # What JSON without vectors ends with: proxies answer so when the model behind them fails.
            raise ModelUnavailable(
                f"The endpoint of the model '{self.profile.name}' sent no vectors.", profile=self.profile.name
            ) from error

    def _checked(self, rows: list[Vectors], expected: int) -> Vectors:
        """The vectors as a matrix, each of length 1."""
        if len(rows) != expected:
            raise EmbeddingMismatch(
                f"The model '{self.profile.name}' was sent {expected} texts and gave {len(rows)} vectors.",
                profile=self.profile.name,
                expected=expected,
                received=len(rows),
            )
        for row in rows:
            if len(row) != self.dimension:
                raise EmbeddingMismatch(
                    f"The model '{self.profile.name}' gave vectors of {len(row)} dimensions, "
                    f"its profile says {self.dimension}.",
                    profile=self.profile.name,
                    expected=self.dimension,
                    received=len(row),
                )
        vectors = np.asarray(rows, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise EmbeddingMismatch(
                f"The model '{self.profile.name}' gave a vector without a direction.", profile=self.profile.name
            )
        return np.asarray(vectors / lengths, dtype=np.float32)


def _numbers(embedding: list[float] | str) -> Vectors:
    """A vector as it was sent: base64 of little-endian floats, or numbers by a server that knows nothing else.

    Raises ValueError where it is neither.
    """
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return np.asarray(embedding, dtype=np.float32)


def _batches(texts: Sequence[str], *, is_exact: bool) -> Iterator[tuple[list[int], int]]:
    """Rows of texts that are not blank, in batches of bounded size, with the tokens of each batch.

    Unless they are asked for exactly, a text that fits in any case counts as many tokens as bytes, of which it has more.
    """
    rows: list[int] = []
    total = 0
    for row, text in enumerate(texts):
        if not text.strip():
            continue
        tokens = len(text.encode("utf-8", "replace"))
        if is_exact or total + tokens > _MAX_TOKENS:
            tokens = count_tokens(text)
        if rows and (len(rows) == _MAX_TEXTS or total + tokens > _MAX_TOKENS):
            yield rows, total
            rows, total = [], 0
        rows.append(row)
        total += tokens
    if rows:
        yield rows, total
