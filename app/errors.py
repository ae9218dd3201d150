"""The errors Trellis raises on purpose.

AppError
├── NotFound          the thing does not exist, or belongs to another tenant
├── Conflict          the thing exists but its state does not allow this
├── Forbidden         the caller is known and may not do this
├── Unauthenticated   the caller is not known
├── Invalid           the request or the document can never work as it is
│   └── UnsupportedMediaType, TooLarge
├── LimitExceeded     a rate or quota stands in the way
├── TimedOut          the caller's own time limit was too short
├── Unavailable       something we depend on is not there now; retrying may help
└── UpstreamRefused   something we depend on answered, and never with what we need; the caller is not to blame

Only `Unavailable` is retried by workers. `app/api/problems.py` maps each kind to a status.
"""

from typing import Any, ClassVar


class AppError(Exception):
    """Base of every expected error: `code` is stable for programs, `detail` is a sentence for people."""

    code: ClassVar[str] = "error"
    title: ClassVar[str] = "Error"

    def __init__(self, detail: str, *, code: str | None = None, **facts: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = code or self.code
        self.facts = facts


class NotFound(AppError):
    code = "not_found"
    title = "Not found"


class Conflict(AppError):
    code = "conflict"
    title = "Conflict"


class Forbidden(AppError):
    code = "forbidden"
    title = "Forbidden"


class Unauthenticated(AppError):
    code = "unauthenticated"
    title = "Unauthenticated"


class Invalid(AppError):
    code = "invalid"
    title = "Invalid request"


class UnsupportedMediaType(Invalid):
    code = "unsupported_media_type"
    title = "Unsupported media type"


class TooLarge(Invalid):
    code = "too_large"
    title = "Too large"


class LimitExceeded(AppError):
    code = "limit_exceeded"
    title = "Limit exceeded"


class TimedOut(AppError):
    code = "timed_out"
    title = "Not done in time"


class Unavailable(AppError):
    code = "unavailable"
    title = "Temporarily unavailable"


class UpstreamRefused(AppError):
    code = "upstream_refused"
    title = "Refused by a service behind"
