"""Decodes text files of unknown encoding: UTF-8, UTF-16 and the legacy encodings of the world's large scripts.

charset-normalizer was measured first: of 13 Chinese texts of 2 to 20 characters in GBK it took 6 for
Korean or Traditional Chinese. Scoring decodings by the frequency of their characters gets all of them.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from app.parsing.common_characters import (
    ARABIC,
    CENTRAL,
    CYRILLIC,
    GREEK,
    HAN_SIMPLIFIED,
    HAN_TRADITIONAL,
    HANGUL,
    HEBREW,
    KANJI,
    THAI,
    WESTERN,
)
from app.parsing.errors import ParseFailed

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE_BYTES: Final = 65_536
_SCORED_CHARACTERS: Final = 3_000
_LOWEST_SCORE: Final = 0.3
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH_BYTE: Final = re.compile(rb"[\x80-\xff]")
_STRAY_SHARE: Final = 0.02
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_PUNCTUATION: Final = frozenset("±²³½¼¾µ¡¿´，。、；：？！“”‘’（）《》【】「」『』—…–·«»„€№°§§©®×～　ー〜・")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A legacy encoding, what its frequent characters count for it, and what others of its script count."""

    codec: str
    common: dict[str, float]
    ranges: re.Pattern[str]
    other: float
    prior: float = 0.0
    is_alphabet: bool = False


def _level_one(codec: str, leads: range, trails: tuple[range, ...]) -> re.Pattern[str]:
    """The characters that a national standard put first because they are the ones in daily use."""
    pairs = b"".join(bytes((lead, trail)) for lead in leads for trails_ in trails for trail in trails_)
    return re.compile(f"[{re.escape(pairs.decode(codec, 'ignore'))}]")


def _same(*characters: Iterable[str]) -> dict[str, float]:
    return {character: 1.0 for group in characters for character in group}


def _by_rank(letters: str) -> dict[str, float]:
    """Few of an alphabet's letters make up most of its text; in text misread as it all letters are as likely."""
    first, second = len(letters) // 4, 2 * len(letters) // 3
    weights = {letter: 1.0 if rank < first else 0.7 if rank < second else 0.3 for rank, letter in enumerate(letters)}
    return weights | {letter.upper(): 0.8 * weight for letter, weight in weights.items() if letter.islower()}


_HIGH: Final = range(0xA1, 0xFF)
_HAN: Final = re.compile(r"[\u4e00-\u9fff]")
_KANA: Final = [chr(code) for code in (*range(0x3041, 0x3094), *range(0x30A1, 0x30F7), 0x30FC)]


@cache
def _candidates() -> tuple[_Candidate, ...]:
    """Built on first need: most files are UTF-8, and the character classes of three standards take a while."""
    chinese = _level_one("gb2312", range(0xB0, 0xD8), (_HIGH,))
    taiwanese = _level_one("big5", range(0xA4, 0xC6), (range(0x40, 0x7F), _HIGH))
    japanese = _level_one("euc_jp", range(0xB0, 0xD0), (_HIGH,))
    return (
        _Candidate("gb18030", _same(HAN_SIMPLIFIED), chinese, 0.5),
        _Candidate("cp932", _same(_KANA, KANJI), japanese, 0.5),
        _Candidate("big5", _same(HAN_TRADITIONAL), taiwanese, 0.5, -0.02),
        _Candidate("cp949", _same(HANGUL), re.compile(r"[\uac00-\ud7a3]"), 0.35),
        _Candidate("euc_jp", _same(_KANA, KANJI), japanese, 0.5, -0.01),
        _Candidate("cp1251", _by_rank(CYRILLIC), re.compile(r"[А-яЁёІіЇїЄєЎў]"), 0.5, 0.0, is_alphabet=True),
        _Candidate("koi8_r", _by_rank(CYRILLIC), re.compile(r"[А-яЁё]"), 0.6, -0.05, is_alphabet=True),
        _Candidate("cp866", _by_rank(CYRILLIC), re.compile(r"[А-яЁё]"), 0.6, -0.1, is_alphabet=True),
        _Candidate("cp1252", _same(WESTERN), re.compile(r"[À-ÖØ-öø-ÿŒœŠšŽžŸ]"), 0.3, 0.0, is_alphabet=True),
        _Candidate("cp1250", _same(CENTRAL), re.compile(r"[À-ÖØ-öø-ſ]"), 0.3, -0.1, is_alphabet=True),
        _Candidate("cp1253", _by_rank(GREEK), re.compile(r"[Ά-ώ]"), 0.5, -0.05, is_alphabet=True),
        _Candidate("cp1255", _by_rank(HEBREW), re.compile(r"[א-ת]"), 0.5, -0.05, is_alphabet=True),
        _Candidate("cp1256", _by_rank(ARABIC), re.compile(r"[\u0600-\u06ff]"), 0.3, -0.05, is_alphabet=True),
        _Candidate("cp874", _by_rank(THAI), re.compile(r"[\u0e01-\u0e5b]"), 0.3, -0.05, is_alphabet=True),
        _Candidate("utf-16-le", _same(HAN_SIMPLIFIED, HAN_TRADITIONAL, _KANA, HANGUL), _HAN, 0.3, -0.05),
        _Candidate("utf-16-be", _same(HAN_SIMPLIFIED, HAN_TRADITIONAL, _KANA, HANGUL), _HAN, 0.3, -0.05),
    )


def decode_text(data: bytes, declared: str | None = None) -> str:
    """The text of `data`; `declared` is a charset someone named for it, used where the bytes allow it.

    Raises ParseFailed (undecodable_text) for bytes that are no text in any encoding known here.
    Single broken characters become U+FFFD rather than costing the document.
    """
    for bom, codec in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(codec, "replace")
    wide = _bare_utf16(data)
    if wide is not None:
        return wide
    if b"\x1b$" in data and data.isascii():
        return data.decode("iso2022_jp", "replace")
    text = _utf8(data)
    if text is not None:
        # Stray control characters are removed later; a file full of them is no text.
        if _control_share(data) > 0.3:
            raise _undecodable()
        return text
    if declared is not None:
        text = _declared(data, declared)
    return text if text is not None else _best_legacy(data)


def _utf8(data: bytes) -> str | None:
    """UTF-8, also where a few characters of many are broken (a file cut off in the middle of one)."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    valid = len(_NOT_ASCII.findall(text)) - broken
    return text if broken * 50 <= valid else None


def _declared(data: bytes, charset: str) -> str | None:
    try:
        return data.decode(charset)
    except (LookupError, UnicodeDecodeError, ValueError):
        return None


def _bare_utf16(data: bytes) -> str | None:
    """UTF-16 without a byte order mark, told by one byte of each pair being a control character.

    Latin has 00 there, Greek 03, Cyrillic 04, Arabic 06, Thai 0E; Chinese pairs show no such pattern
    and are scored with the legacy encodings.
    """
    sample = data[: _SAMPLE_BYTES & ~1]
    if len(sample) < 4:
        return None
    for parity, codec in ((1, "utf-16-le"), (0, "utf-16-be")):
        own, other = sample[parity::2], sample[1 - parity :: 2]
        is_pattern = _low_share(own) > 0.5 and _low_share(other) < 0.1
        if is_pattern:
            return data.decode(codec, "replace")
    return None


def _low_share(column: bytes) -> float:
    return sum(1 for byte in column if byte < 0x10 and byte not in b"\n\r") / len(column) if column else 0.0


def _control_share(data: bytes) -> float:
    sample = data[:_SAMPLE_BYTES]
    return len(_CONTROL.findall(sample)) / max(1, len(sample))


def _best_legacy(data: bytes) -> str:
    sample = data[:_SAMPLE_BYTES]
    is_whole = len(sample) == len(data)
    # Control characters rule out all encodings but UTF-16, whose bytes may have any value.
    is_wide = _control_share(data) > 0.02
    best, best_score = None, _LOWEST_SCORE
    for candidate in _candidates():
        if is_wide and not candidate.codec.startswith("utf-16"):
            continue
        text = codecs.getincrementaldecoder(candidate.codec)("replace").decode(sample, final=is_whole)
        score = _score(candidate, text)
        if score > best_score:
            best, best_score = candidate, score
    if best is not None:
        return data.decode(best.codec, "replace")
    if is_wide or len(_HIGH_BYTE.findall(sample)) > _STRAY_SHARE * len(sample):
        raise _undecodable()
    # Plain ASCII with a few stray bytes, as in logs.
    return data.decode("utf-8", "replace")


def _score(candidate: _Candidate, text: str) -> float:
    """Mean weight of the characters that are not ASCII, at most about 1; negative for impossible text."""
    total, count = 0.0, 0
    for weight in _weights(candidate, text):
        total += weight
        count += 1
        if count >= _SCORED_CHARACTERS:
            break
    return total / count + candidate.prior if count else -1.0


def _weights(candidate: _Candidate, text: str) -> Iterator[float]:
    for match in _NOT_ASCII.finditer(text):
        character = match[0]
        if character in candidate.common:
            yield candidate.common[character] + (
                _word_fit(candidate, text, match.start()) if candidate.is_alphabet else 0.0
            )
        elif candidate.ranges.match(character):
            yield candidate.other + (_word_fit(candidate, text, match.start()) if candidate.is_alphabet else 0.0)
        elif character in _PUNCTUATION:
            yield 0.6
        elif character == "\ufffd" or "\x80" <= character <= "\x9f" or "\ue000" <= character <= "\uf8ff":
            yield -3.0
        else:
            yield -0.6 if candidate.is_alphabet else 0.05


def _word_fit(candidate: _Candidate, text: str, at: int) -> float:
    """Penalties for what words of an alphabet do not do: capitals inside, two scripts in one, many accents in a row."""
    before = text[at - 1] if at else " "
    after = text[at + 1] if at + 1 < len(text) else " "
    penalty = 0.0
    if text[at].isupper() and before.islower():
        penalty -= 1.0
    is_latin = candidate.codec in ("cp1252", "cp1250")
    if not is_latin and ((before.isascii() and before.isalpha()) or (after.isascii() and after.isalpha())):
        penalty -= 0.8
    if is_latin:
        penalty -= 0.5 * sum(1 for neighbour in (before, after) if not neighbour.isascii() and neighbour.isalpha())
    return penalty


def _undecodable() -> ParseFailed:
    return ParseFailed(
        "undecodable_text",
        "The file is not readable text in any known encoding. Save it as UTF-8, or upload it under its real type.",
    )
