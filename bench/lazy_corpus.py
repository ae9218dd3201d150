"""A corpus of any size for `make bench-lazy`: copies of a set's passages in which most rare words are renamed.

Without that a copy would share every name with the others, and no concept of a large corpus would be rare. Vectors of
copies are the originals' with noise, so that a search finds neighbours at different distances.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from app.providers.contract import EmbeddingRole, ModelProfile, Vectors
from bench.datasets import SourceDocument, SourcePassage

DOCUMENT_PASSAGES = 20
RARE = 30  # passages
RENAMED_PERCENT = 85
NOISE = 0.5  # length of what is added to a vector of length 1
_WORD = re.compile(r"[^\W\d_]{4,}")
_SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu")


@dataclass(frozen=True)
class BasePassage:
    title: str
    text: str


class RenamedCopies:
    """Documents of 20 passages each, numbered from 0; the same number gives the same document."""

    def __init__(self, passages: Sequence[BasePassage]) -> None:
        self._passages = passages
        found = Counter(word for passage in passages for word in set(_WORD.findall(f"{passage.title} {passage.text}")))
        self._rare = {word for word, count in found.items() if count <= RARE}

    def document(self, number: int) -> SourceDocument:
        """Passages that follow each other in the set, in one copy of it."""
        per_copy = len(self._passages) // DOCUMENT_PASSAGES
        copy, place = divmod(number, per_copy)
        chosen = self._passages[place * DOCUMENT_PASSAGES : (place + 1) * DOCUMENT_PASSAGES]
        texts = [self._renamed(passage.text.replace("\n", " "), copy) for passage in chosen]
        passages, position = [], 0
        for text in texts:
            passages.append(SourcePassage("", position, position + len(text)))
            position += len(text) + 2
        return SourceDocument(self._renamed(chosen[0].title, copy), "\n\n".join(texts), tuple(passages))

    def _renamed(self, text: str, copy: int) -> str:
        if copy == 0:
            return text

        def rename(match: re.Match[str]) -> str:
            word = match.group()
            if word not in self._rare:
                return word
            digest = blake2b(f"{copy} {word}".encode(), digest_size=4).digest()
            if digest[0] * 100 // 256 >= RENAMED_PERCENT:
                return word
            return word + "".join(_SYLLABLES[byte % 10] for byte in digest[1:])

        return _WORD.sub(rename, text)


class NoisyVectors:
    """An `EmbeddingModel` without a model: a base vector by the text's digest, with noise by the text itself.

    What a search costs depends on how vectors lie, not on what they mean, and an embedding is not what is measured.
    """

    def __init__(self, profile: ModelProfile, dimension: int, centres: int = 500) -> None:
        self.profile = profile
        self.dimension = dimension
        self._known: dict[str, Vectors] = {}
        self._centres = _unit(np.random.default_rng(7).normal(size=(centres, dimension)))

    async def remember(self, texts: Sequence[str]) -> None:
        """Make the vectors that the next calls ask for, so that those cost nothing. What was made before is forgotten."""
        self._known = dict(zip(texts, self._made(texts), strict=True)) if texts else {}

    async def embed(self, texts: Sequence[str], *, role: EmbeddingRole) -> Vectors:  # noqa: ARG002 - the same for both
        known = [self._known[text] for text in texts if text in self._known]
        return np.stack(known) if len(known) == len(texts) else self._made(texts)

    def _made(self, texts: Sequence[str]) -> Vectors:
        seeds = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") for text in texts]
        noise = np.stack([np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds])
        chosen = self._centres[[seed % len(self._centres) for seed in seeds]]
        return _unit(chosen + NOISE * _unit(noise)).astype(np.float32)

    async def aclose(self) -> None:
        """Nothing is open."""


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
