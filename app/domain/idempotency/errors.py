"""Why a request with an Idempotency-Key is not carried out."""

from app.errors import Conflict, Invalid


class IdempotencyKeyReused(Invalid):
    """The key was used on this route for another request: a key stands for one request, byte for byte."""

    code = "idempotency_key_reused"
    title = "The Idempotency-Key was used for another request"


class IdempotencyInProgress(Conflict):
    """The first request with this key has not been answered yet; send it again after `Retry-After`."""

    code = "idempotency_in_progress"
    title = "The first request with this Idempotency-Key is still under way"
