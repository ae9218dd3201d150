"""Refuses documents of more pages, slides or sheets than a parse may have."""

from app.parsing.errors import ParseFailed
from app.parsing.job import ParseLimits


def check_pages(count: int, limits: ParseLimits, what: str) -> None:
    """Raises ParseFailed (document_too_long) beyond `limits.max_pages`."""
    if limits.max_pages is not None and count > limits.max_pages:
        raise ParseFailed(
            "document_too_long",
            f"The document has {count:,} {what}; at most {limits.max_pages:,} are allowed. Split it.",
            pages=count,
            max_pages=limits.max_pages,
        )
