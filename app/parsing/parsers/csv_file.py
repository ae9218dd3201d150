"""CSV and TSV: table blocks that each start with the header, which is the first row."""

import csv
import io
from typing import Final

from app.parsing.builder import SourceBuilder
from app.parsing.cleaning import clean_text
from app.parsing.encoding import decode_text
from app.parsing.job import ParseJob
from app.parsing.tables import add_table

_SAMPLE: Final = 16_384
_DELIMITERS: Final = ",;\t|"


def parse(job: ParseJob, out: SourceBuilder) -> None:
    text = clean_text(decode_text(job.path.read_bytes(), job.charset))
    csv.field_size_limit(max(len(text), 1))
    add_table(out, csv.reader(io.StringIO(text), delimiter=_delimiter(text[:_SAMPLE])))


def _delimiter(sample: str) -> str:
    """The delimiter that gives the most columns in the same number on most lines; a comma if none gives two."""
    best, best_score = ",", 0.0
    for delimiter in _DELIMITERS:
        widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=delimiter) if row][:50]
        if not widths:
            continue
        usual = max(set(widths), key=widths.count)
        score = widths.count(usual) / len(widths) * (usual - 1)
        if score > best_score:
            best, best_score = delimiter, score
    return best
