"""Reranking over any endpoint that speaks as Cohere's and Jina's do: `POST {base_url}/rerank`."""

import math
from collections.abc import Mapping, Sequence
from json import JSONDecodeError
from typing import Any

from app.providers.calling import calling
from app.providers.contract import ModelNonsense, ModelProfile, Purpose, Ranked
from app.providers.limits import ModelLimits
from app.providers.openai_client import open_client
from app.providers.usage import counting_abandoned, record_call
from app.text.tokens import count_tokens


class Reranker:
    """A `RerankModel` that believes nothing it is told: an order with a hole in it would lose evidence unseen."""

    def __init__(self, profile: ModelProfile, limits: ModelLimits) -> None:
        self.profile = profile
        self.limits = limits
        self._client = open_client(profile)

    async def rerank(self, query: str, documents: Sequence[str], *, top_n: int) -> list[Ranked]:
        tokens = count_tokens(query) + sum(map(count_tokens, documents))
        body = {"model": self.profile.model, "query": query, "documents": list(documents), "top_n": top_n}
        async with self.limits.call(tokens):
            with (
                calling(self.profile, Purpose.RERANK),
                counting_abandoned(self.profile, Purpose.RERANK, lambda: tokens),
            ):
                answer: Any = await self._client.post("/rerank", cast_to=object, body=body)
        used = _tokens_of(answer)
        record_call(
            self.profile, Purpose.RERANK, tokens_in=used or tokens, tokens_out=0, is_estimated=not used
        )  # fmt: skip
        try:
            return _checked(answer["results"], len(documents), top_n)
        except JSONDecodeError:
            raise
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            raise ModelNonsense(
                f"The reranker '{self.profile.name}' sent something that is no ranking.", profile=self.profile.name
            ) from error

    async def aclose(self) -> None:
        await self._client.close()


def _checked(results: Sequence[Mapping[str, Any]], documents: int, top_n: int) -> list[Ranked]:
    """The `top_n` best, best first. Raises ValueError, or what reading something else ends with."""
    ranked = [Ranked(int(found["index"]), float(found["relevance_score"])) for found in results]
    indexes = {item.index for item in ranked}
    if len(ranked) < min(top_n, documents) or len(indexes) < len(ranked):
        raise ValueError("results are missing or doubled")
    if not all(0 <= item.index < documents and math.isfinite(item.score) for item in ranked):
        raise ValueError("a result has no place or no score")
    return sorted(ranked, key=lambda item: (-item.score, item.index))[:top_n]


def _tokens_of(answer: Any) -> int:
    """Tokens as Jina and others tell them, in Cohere's `meta` as Cohere does; 0 by servers that do not."""
    try:
        told = answer.get("usage") or (answer.get("meta") or {}).get("tokens") or {}
        return int(told.get("total_tokens") or told.get("input_tokens") or 0)
    except (AttributeError, TypeError, ValueError):
        return 0
