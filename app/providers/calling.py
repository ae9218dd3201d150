"""What surrounds each request to a model: its errors as ours, its time in the metrics, its span in the trace."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from app import tracing
from app.metrics import MODEL_SECONDS
from app.providers.contract import ModelProfile, Purpose
from app.providers.openai_errors import translated_errors

OPERATIONS = {"chat": "chat", "embedding": "embeddings", "rerank": "rerank"}


@contextmanager
def calling(profile: ModelProfile, purpose: Purpose) -> Iterator[dict[str, tracing.Value]]:
    """The block asks a model, whose limits have been waited for; what it adds to the dictionary stands in the span.

    Raises what `translated_errors` does.
    """
    operation = OPERATIONS[profile.role]
    attributes: dict[str, tracing.Value] = {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": profile.name,
        "trellis.purpose": purpose.value,
    }
    started, outcome = perf_counter(), "answered"
    failure: BaseException | None = None
    try:
        with translated_errors(profile):
            yield attributes
    except BaseException as error:
        outcome, failure = "failed" if isinstance(error, Exception) else "abandoned", error
        raise
    finally:
        seconds = perf_counter() - started
        MODEL_SECONDS.labels(profile.name, purpose.value, outcome).observe(seconds)
        # Afterwards: whoever reads a stream does so in a context of its own, between the pieces.
        tracing.note_past(f"{operation} {profile.name}", attributes, seconds, failure)
