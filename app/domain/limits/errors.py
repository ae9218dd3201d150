"""Why a tenant cannot have more now."""

import json
from typing import Any

from app.errors import Forbidden, LimitExceeded, NotFound

# Raised by the counting triggers of the schema.
QUOTA_SQLSTATE = "TQ001"


class RateLimited(LimitExceeded):
    """The tenant's plan allows no more requests in this minute; `Retry-After` says when it does."""

    code = "rate_limited"
    title = "Too many requests"


class QuotaExceeded(Forbidden):
    """A limit of the tenant's plan stands in the way; `limit`, `maximum`, `used` and `resets_at` are facts."""

    code = "quota_exceeded"
    title = "A limit of the plan is reached"


class PlanNotFound(NotFound):
    """There is no plan of this name."""

    code = "plan_not_found"
    title = "Plan not found"


def quota_of(error: BaseException) -> QuotaExceeded | None:
    """The refusal that a database error stands for, if a counting trigger raised it."""
    orig = getattr(error, "orig", None)
    if getattr(orig, "sqlstate", None) != QUOTA_SQLSTATE:
        return None
    detail = getattr(getattr(orig, "__cause__", None), "detail", None)
    facts: dict[str, Any] = json.loads(detail) if detail else {}
    return quota_exceeded(**facts)


def quota_exceeded(**facts: Any) -> QuotaExceeded:
    sentence = f"Your plan allows {facts.get('maximum')} of {facts.get('limit')}; {facts.get('used')} are used, so this is too much."
    return QuotaExceeded(sentence, **facts)
