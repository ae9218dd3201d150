"""Removes what no index or database may see from text, and nothing else. Pure."""

import re
import unicodedata
from typing import Final

_LINE_ENDS: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Control characters except tab and line end, soft hyphens, byte order marks, noncharacters, lone surrogates.
_UNWANTED: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\ufeff\ufdd0-\ufdef\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_LIGATURES: Final = re.compile("[\ufb00-\ufb06\u2e80-\u2fd5]")
_SPACES: Final = re.compile(r"\s+")


def clean_text(text: str) -> str:
    """Text with line ends as `\\n`, without control characters, in Unicode's composed form (NFC)."""
    text = _LINE_ENDS.sub("\n", text)
    text = _UNWANTED.sub("", text)
    return unicodedata.normalize("NFC", text)


def one_line(text: str) -> str:
    """Cleaned text with every run of white space as one space: for headings, titles and table cells."""
    return _SPACES.sub(" ", clean_text(text)).strip()


def fold_glyph_forms(text: str) -> str:
    """Latin ligatures and CJK radicals, which PDF fonts put in place of letters, as the letters they stand for."""
    return _LIGATURES.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
