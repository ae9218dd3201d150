"""Which schema this code was written for."""

import re
from functools import cache
from pathlib import Path

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations" / "versions"
# Files of migrations are named by their day, their revision and what they do.
REVISION = re.compile(r"\d{4}_\d{2}_\d{2}_(\d{4}[a-z]?)_\w+\.py")


@cache
def newest_revision() -> str:
    """Revisions are ordered as text. Told by the names of the files alone, which no process that serves has to run."""
    return max(match[1] for file in MIGRATIONS.iterdir() if (match := REVISION.fullmatch(file.name)))
