"""Model profiles for tests."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from app.providers.contract import ModelProfile

OFFLINE_CHAT = ModelProfile(UUID(int=1), "offline-chat", "chat", "offline", "rules")


def chat_profile(base_url: str, **changes: Any) -> ModelProfile:
    """A chat profile without retries, which would only make failing tests slow."""
    profile = ModelProfile(UUID(int=2), "stub-chat", "chat", "openai", "stub", base_url=base_url, max_retries=0)
    return replace(profile, **changes)


def embedding_profile(base_url: str, **changes: Any) -> ModelProfile:
    profile = ModelProfile(
        UUID(int=3), "stub-embedding", "embedding", "openai", "stub", base_url=base_url, dimension=384, max_retries=0
    )
    return replace(profile, **changes)


def rerank_profile(base_url: str, **changes: Any) -> ModelProfile:
    profile = ModelProfile(UUID(int=5), "stub-rerank", "rerank", "openai", "stub", base_url=base_url, max_retries=0)
    return replace(profile, **changes)


def offline_embedding_profile(model: str) -> ModelProfile:
    return ModelProfile(UUID(int=4), f"offline-{model}", "embedding", "offline", model)
