"""What one parse is given: the limits callers set, and the job the child process works on."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Bounds of one parse; `max_pages` also bounds slides and sheets, None means no bound."""

    timeout_seconds: float = 120.0
    memory_bytes: int = 1_500_000_000
    max_text_chars: int = 20_000_000
    max_pages: int | None = 5_000


@dataclass(frozen=True, slots=True)
class ParseJob:
    """One file to parse; `charset` is what the uploader declared, a hint only."""

    path: Path
    format_name: str
    charset: str | None
    limits: ParseLimits
