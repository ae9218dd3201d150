"""Tokens of a text in any script and their normal form: what concepts, search terms and keywords are built from.

Pure and deterministic. Which words matter is decided in ``extraction`` and ``stopwords``.
"""

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import NamedTuple


class Script(Enum):
    """How a script marks its words and names."""

    CASED = "cased"  # words with spaces, names with capitals: Latin, Greek, Cyrillic, Armenian
    CASELESS = "caseless"  # words with spaces, no capitals: Arabic, Hebrew, Devanagari, Hangul and others
    CJK = "cjk"  # no spaces: Chinese characters and kana
    UNSPACED = "unspaced"  # no spaces: Thai, Lao, Burmese, Khmer


class Token(NamedTuple):
    """A run of word characters: ``text[start:end]`` of the text it was found in."""

    text: str
    start: int
    end: int
    script: Script


_CJK = "\u3005\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_CJK_ONE = re.compile(f"[{_CJK}]")
_UNSPACED_ONE = re.compile(f"[{_UNSPACED}]")
_CASED_ONE = re.compile("[A-Za-z\u00aa\u00ba-\u058f\u1c80-\u1c8f\u1d00-\u1fff\u2c60-\u2dff\ua640-\ua7ff\uff21-\uff5a]")


def _word_class() -> str:
    """The inside of a character class: letters, digits and the marks that combine with them, scripts without spaces left out.

    Python's ``\\w`` leaves combining marks out, which would cut every Hindi word at its vowel signs.
    """
    ranges: list[list[int]] = []
    for code in range(0x30, 0x20000):
        char = chr(code)
        is_word = char.isalnum() or unicodedata.category(char) in ("Mn", "Mc") or code in (0x200C, 0x200D)
        if not is_word or _CJK_ONE.match(char) or _UNSPACED_ONE.match(char):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_WORD = _word_class()
_TOKEN = re.compile(
    f"[{_CJK}]+|[{_UNSPACED}]+|"
    rf"[{_WORD}]+(?:(?:[’'\-_./+#&]|(?<=\d),(?=\d\d\d(?!\d)))[{_WORD}]+)*[+#]*",
)
_FRENCH_ELISION = re.compile("^(?:[ldjnsmtc]|[Ll]|[Qq]u)['’](?=..)")
_POSSESSIVE = re.compile("['’ʼ]s$")
_LATIN_ACCENTS = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_ARABIC_MARKS = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u200c\u200d]")
_ARABIC_LETTERS = str.maketrans(
    {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ة": "ه", "ى": "ي", "ё": "е", "ک": "ك", "ی": "ي"}
)
_OTHER_DIGITS = re.compile(r"[^\x00-\x7f]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d)")
_CACHED_CHARS = 64
_CACHED_WORDS = 65_536


def tokens(text: str) -> Iterator[Token]:
    """The tokens of ``text`` in order. A token is a whole run for scripts without spaces, and a word for all others."""
    for match in _TOKEN.finditer(text):
        found, start = match.group(), match.start()
        if not found.isalpha() and (elided := _FRENCH_ELISION.match(found)):
            found, start = found[elided.end() :], start + elided.end()
        yield Token(found, start, match.end(), Script.CASED if found.isascii() else script_of(found))


def script_of(token: str) -> Script:
    """The script of a token, judged by its first letter; tokens without letters count as cased."""
    return Script.CASED if token.isascii() else _script_of_other(token)


@lru_cache(maxsize=_CACHED_WORDS)
def _script_of_other(token: str) -> Script:
    first = next((char for char in token if char.isalpha()), "a")
    if _CASED_ONE.match(first):
        return Script.CASED
    if _CJK_ONE.match(first):
        return Script.CJK
    return Script.UNSPACED if _UNSPACED_ONE.match(first) else Script.CASELESS


def normalise(text: str) -> str:
    """The form under which two spellings are the same concept: case, width, accents of Latin letters, Arabic and Russian
    spelling variants, possessive ``'s``, thousands separators and runs of white space are all levelled.
    """
    return _normalise_short(text) if len(text) <= _CACHED_CHARS else _normalise(text)


def _normalise(text: str) -> str:
    if text.isascii():
        text = text.lower()
    else:
        text = unicodedata.normalize("NFKD", text).casefold()
        text = _ARABIC_MARKS.sub("", _LATIN_ACCENTS.sub("", text))
        text = unicodedata.normalize("NFKC", text).translate(_ARABIC_LETTERS)
        text = _OTHER_DIGITS.sub(_ascii_digit, text)
    text = " ".join(_POSSESSIVE.sub("", part) for part in text.split())
    return _THOUSANDS.sub("", text)


@lru_cache(maxsize=_CACHED_WORDS)
def _normalise_short(text: str) -> str:
    return _normalise(text)


def _ascii_digit(match: re.Match[str]) -> str:
    digit = unicodedata.decimal(match.group(), None)
    return match.group() if digit is None else str(digit)
