"""Translates what the OpenAI SDK raises into errors of ours, without ever repeating a key."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from typing import Final

import openai

from app.providers.contract import ModelProfile, ModelRejected, ModelUnavailable

_RETRYABLE: Final = frozenset({408, 409, 425, 429})
_KEY: Final = re.compile(r"\b(?:sk|pk|key|gsk|xai)[-_][\w*-]{4,}|Bearer\s+\S+", re.IGNORECASE)
_MAX_DETAIL_CHARS: Final = 300


@contextmanager
def translated_errors(profile: ModelProfile) -> Iterator[None]:
    """Raise `ModelUnavailable` or `ModelRejected` for every error of the provider raised inside."""
    try:
        yield
    except openai.APIStatusError as error:
        raise _of_status(profile, error) from error
    except openai.APITimeoutError as error:
        raise ModelUnavailable(
            f"The model '{profile.name}' did not answer within {profile.timeout_seconds:g} seconds.",
            profile=profile.name,
        ) from error
    except openai.APIConnectionError as error:
        raise ModelUnavailable(
            f"The endpoint of the model '{profile.name}' cannot be reached.", profile=profile.name
        ) from error
    except (openai.APIError, JSONDecodeError) as error:
        # Proxies answer 200 with a page or half a document when the model behind them fails.
        raise ModelUnavailable(
            f"The endpoint of the model '{profile.name}' sent something that is no answer.", profile=profile.name
        ) from error


def _of_status(profile: ModelProfile, error: openai.APIStatusError) -> ModelUnavailable | ModelRejected:
    status = error.status_code
    said = provider_message(error, profile)
    is_spent = error.code == "insufficient_quota"
    if (status in _RETRYABLE or status >= 500) and not is_spent:
        return ModelUnavailable(
            f"The provider of the model '{profile.name}' answered {status}: {said}", profile=profile.name, status=status
        )
    return ModelRejected(
        f"The provider of the model '{profile.name}' refused the request with {status}: {said}",
        profile=profile.name,
        status=status,
    )


def provider_message(error: openai.APIStatusError, profile: ModelProfile) -> str:
    """What the provider said, shortened, with the profile's key and anything that looks like a key blacked out."""
    body = error.body
    text = str(body.get("message", "")) if isinstance(body, dict) else ""
    text = " ".join((text or error.response.reason_phrase).split())
    if profile.api_key and (secret := profile.api_key.get_secret_value()):
        text = text.replace(secret, "***")
    return _KEY.sub("***", text)[:_MAX_DETAIL_CHARS]
