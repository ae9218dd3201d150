"""Tokens of a text in any script and their normal form: what concepts, search terms and keywords are built from.

Pure and deterministic. Which words matter is decided in ``extraction`` and ``stopwords``. What is known of a spelling by
itself is found once and cached, for most words of a text were seen before.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from app.text.sentences import sentence_spans

if TYPE_CHECKING:
    from app.text.concepts.extraction import Mention


class Script(Enum):
    """How a script marks its words and names."""

    CASED = "cased"  # words with spaces, names with capitals: Latin, Greek, Cyrillic, Armenian
    CASELESS = "caseless"  # words with spaces, no capitals: Arabic, Hebrew, Devanagari, Hangul and others
    CJK = "cjk"  # no spaces: Chinese characters and kana
    UNSPACED = "unspaced"  # no spaces: Thai, Lao, Burmese, Khmer


class Lexeme:
    """What a token's spelling says, wherever it stands. The last four are found by other modules when they are asked for."""

    __slots__ = ("is_capitalised", "is_identifier", "mentions", "name", "normal", "script", "terms", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        if text.isascii() and text.isalpha():  # the same as below, for most words there are
            self.normal = text.lower()
            self.script = Script.CASED
            self.is_identifier = text[1:].lower() != text[1:]
        else:
            self.normal = _normalise(text)
            self.script = script_of(text)
            self.is_identifier = self.script is Script.CASED and is_identifier(text)
        # A capital first, or anywhere inside (``iPhone``).
        self.is_capitalised = self.is_identifier or (self.script is Script.CASED and text[0].isupper())
        self.mentions: Sequence[Mention] | None = None  # what it says outside of any name
        self.name: Mention | None = None  # what it says as one
        self.terms: Sequence[str] | None = None
        self.words: Sequence[str] | None = None  # of a token in a script without capitals


class Token(NamedTuple):
    """A run of word characters: ``text[start:end]`` of the text it was found in."""

    lexeme: Lexeme
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.lexeme.text

    @property
    def script(self) -> Script:
        return self.lexeme.script


class Sentence(NamedTuple):
    """A sentence with its tokens, so that it is read once for all that is made of it."""

    text: str
    tokens: Sequence[Token]
    starts_paragraph: bool = False


_CJK = "\u3005\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_RARE_CJK = "\U00020000-\U0003ffff"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_CJK_ONE = re.compile(f"[{_CJK}{_RARE_CJK}]")
_UNSPACED_ONE = re.compile(f"[{_UNSPACED}]")
_CASED_ONE = re.compile("[A-Za-z\u00aa\u00ba-\u058f\u1c80-\u1c8f\u1d00-\u1fff\u2c60-\u2dff\ua640-\ua7ff\uff21-\uff5a]")


_LAST_CASED = "\u058f"  # up to here all letters are of scripts that have capitals
_BMP_LAST = "\uffff"


def _word_class(last: str) -> str:
    """The inside of a character class: letters, digits and the marks that combine with them, scripts without spaces left out.

    Python's ``\\w`` leaves combining marks out, which would cut every Hindi word at its vowel signs.
    """
    ranges: list[list[int]] = []
    for code in range(0x30, ord(last) + 1):
        char = chr(code)
        is_word = char.isalnum() or unicodedata.category(char) in ("Mn", "Mc") or code in (0x200C, 0x200D)
        if not is_word or _CJK_ONE.match(char) or _UNSPACED_ONE.match(char):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


def _token_pattern(cjk: str, word: str) -> re.Pattern[str]:
    return re.compile(
        f"[{cjk}]+|[{_UNSPACED}]+|"
        rf"[{word}]+(?:(?:[’'\-_./+#&]|(?<=\d),(?=\d\d\d(?!\d)))[{word}]+)*[+#]*"
    )


# Three times the same pattern: a class that goes beyond the first plane of Unicode is several times slower.
_ASCII_TOKEN = re.compile(r"[0-9A-Za-z]+(?:(?:['\-_./+#&]|(?<=\d),(?=\d\d\d(?!\d)))[0-9A-Za-z]+)*[+#]*")
_BMP_TOKEN = _token_pattern(_CJK, _word_class(_BMP_LAST))
_TOKEN = _token_pattern(_CJK + _RARE_CJK, _word_class("\U0001ffff"))
_MARKS_BEHIND = ".,;:!?)"
_FRENCH_ELISION = re.compile("^(?:[ldjnsmtc]|[Ll]|[Qq]u)['’](?=..)")
_POSSESSIVE = re.compile("['’ʼ]s$")
_APOSTROPHE = re.compile("['’ʼ]")
_LATIN_ACCENTS = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_ARABIC_MARKS = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u200c\u200d]")
_ARABIC_LETTERS = str.maketrans(
    {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ة": "ه", "ى": "ي", "ё": "е", "ک": "ك", "ی": "ي"}
)
_OTHER_DIGITS = re.compile(r"(?![0-9])\d")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d)")
_IDENTIFIER_CHARS = frozenset("_+#")
_CACHED_CHARS = 64
_CACHED_WORDS = 65_536


def sentences(text: str) -> list[Sentence]:
    """The sentences of ``text``. No token crosses their ends, so their tokens together are those of the text."""
    found: list[Sentence] = []
    end = 0
    for left, right in sentence_spans(text):
        sentence = text[left:right]
        found.append(Sentence(sentence, tokens(sentence), not found or "\n" in text[end:left]))
        end = right
    return found


def tokens(text: str) -> list[Token]:
    """The tokens of ``text`` in order. A token is a whole run for scripts without spaces, and a word for all others.

    No token holds a space, so each stretch between spaces can be looked up by itself.
    """
    stretches = text.split(" ")
    lengths = list(map(len, stretches))
    # What is done for each token is kept to the least: this is where a fifth of all time goes.
    pieces = map(_short_pieces if max(lengths) <= _CACHED_CHARS else _pieces_of_any, stretches)
    places = accumulate(map((1).__add__, lengths), initial=0)
    new = tuple.__new__  # a NamedTuple's own is a function more
    return [
        new(Token, (lexeme, place + start, place + end))
        for place, found in zip(places, pieces, strict=False)
        for lexeme, start, end in found
    ]


def _pieces_of_any(stretch: str) -> tuple[tuple[Lexeme, int, int], ...]:
    return _short_pieces(stretch) if len(stretch) <= _CACHED_CHARS else _pieces(stretch)


def _pieces(stretch: str) -> tuple[tuple[Lexeme, int, int], ...]:
    if not stretch:
        return ()
    last = max(stretch)
    # Most stretches are one word, with a mark behind it at most.
    word = stretch if stretch[-1] not in _MARKS_BEHIND else stretch[:-1]
    if last <= _LAST_CASED and word.isalpha():
        return ((lexeme(word), 0, len(word)),)
    return tuple(_several(stretch, last))


@lru_cache(maxsize=_CACHED_WORDS)
def _short_pieces(stretch: str) -> tuple[tuple[Lexeme, int, int], ...]:
    return _pieces(stretch)


def _several(stretch: str, last: str) -> Iterator[tuple[Lexeme, int, int]]:
    if last <= "\x7f":
        pattern = _ASCII_TOKEN
    else:
        pattern = _BMP_TOKEN if last <= _BMP_LAST else _TOKEN
    for match in pattern.finditer(stretch):
        found, start = match.group(), match.start()
        if not found.isalpha() and (elided := _FRENCH_ELISION.match(found)):
            found, start = found[elided.end() :], start + elided.end()
        yield lexeme(found), start, match.end()


def lexeme(text: str) -> Lexeme:
    """What is known of a token by its text."""
    return _short_lexeme(text) if len(text) <= _CACHED_CHARS else Lexeme(text)


@lru_cache(maxsize=_CACHED_WORDS)
def _short_lexeme(text: str) -> Lexeme:
    return Lexeme(text)


def is_identifier(text: str) -> bool:
    """Whether a token cannot be a plain word: letters with digits, a capital inside, or characters of program names."""
    if text.isalpha() and text[1:].islower():
        return False  # nearly every word, told apart fast
    if not any(char.isalpha() for char in text):
        return False
    has_inner_capital = any(char.isupper() and text[index] not in "-'’" for index, char in enumerate(text[1:]))
    return has_inner_capital or any(char.isdecimal() or char in _IDENTIFIER_CHARS for char in text)


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
        if text.isalpha():
            return text
    else:
        text = unicodedata.normalize("NFKD", text).casefold()
        text = _ARABIC_MARKS.sub("", _LATIN_ACCENTS.sub("", text))
        text = unicodedata.normalize("NFKC", text).translate(_ARABIC_LETTERS)
        text = _OTHER_DIGITS.sub(_ascii_digit, text)
    parts = text.split()
    if _APOSTROPHE.search(text):
        parts = [_POSSESSIVE.sub("", part) for part in parts]
    text = " ".join(parts)
    return _THOUSANDS.sub("", text) if "," in text else text


@lru_cache(maxsize=_CACHED_WORDS)
def _normalise_short(text: str) -> str:
    return _normalise(text)


def _ascii_digit(match: re.Match[str]) -> str:
    return str(unicodedata.decimal(match.group()))
