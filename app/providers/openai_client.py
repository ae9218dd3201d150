"""The SDK's client for a profile: address, key, timeout and retries, nothing taken from the environment."""

import openai

from app.errors import Invalid
from app.providers.contract import ModelProfile


def open_client(profile: ModelProfile) -> openai.AsyncOpenAI:
    """A client whose retries (on 408, 409, 429, 5xx, timeouts and broken connections) back off exponentially and heed
    `Retry-After` up to two minutes.
    """
    if not profile.base_url:
        raise Invalid(f"The model profile '{profile.name}' has no base_url.", code="base_url_missing")
    return openai.AsyncOpenAI(
        base_url=profile.base_url,
        # Local servers want no key, the SDK wants one all the same.
        api_key=profile.api_key.get_secret_value() if profile.api_key else "none",
        timeout=profile.timeout_seconds,
        max_retries=profile.max_retries,
    )
