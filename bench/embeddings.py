"""Embeddings kept on disk between runs, for they are the slow part and never change."""

import sqlite3
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from app.providers.contract import EmbeddingModel, EmbeddingRole, ModelProfile, Vectors


class CachedEmbedding:
    """An `EmbeddingModel` that asks another one only for texts it has not seen in any run."""

    def __init__(self, model: EmbeddingModel, file: Path) -> None:
        self._model = model
        self._rows = sqlite3.connect(file)
        self._rows.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")

    @property
    def profile(self) -> ModelProfile:
        return self._model.profile

    @property
    def dimension(self) -> int:
        return self._model.dimension

    async def embed(self, texts: Sequence[str], *, role: EmbeddingRole) -> Vectors:
        keys = [blake2b(f"{self.profile.model}\0{role}\0{text}".encode(), digest_size=16).digest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if self._find(key) is None}
        if missing:
            vectors = await self._model.embed(list(missing.values()), role=role)
            rows = [(key, vector.tobytes()) for key, vector in zip(missing, vectors, strict=True)]
            with self._rows:
                self._rows.executemany("INSERT INTO vectors VALUES (?, ?)", rows)
        found = b"".join(self._find(key) or b"" for key in keys)
        return np.frombuffer(found, dtype=np.float32).reshape(len(texts), self.dimension)

    def _find(self, key: bytes) -> bytes | None:
        row = self._rows.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    async def aclose(self) -> None:
        self._rows.close()
        await self._model.aclose()
