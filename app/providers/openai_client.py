"""The SDK's client for a profile: address, key, timeout and retries, nothing taken from the environment."""

from typing import Any, Final

import openai

from app.errors import Invalid
from app.providers.contract import ModelProfile
from app.providers.usage import note_abandoned

# Of the HTTP library beneath the SDK: nothing has reached the provider.
NEVER_SENT: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"})


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
        # A redirect would carry documents to whomever it names.
        http_client=_Heard(follow_redirects=False),
    )


class _Heard(openai.DefaultAsyncHttpxClient):
    """The SDK's own HTTP client, which tells of each request that was sent and not heard out, retried ones included."""

    async def send(self, *arguments: Any, **options: Any) -> Any:
        try:
            return await super().send(*arguments, **options)
        except BaseException as error:
            if type(error).__name__ not in NEVER_SENT:
                note_abandoned()
            raise
