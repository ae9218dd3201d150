"""Letters of other scripts in Latin ones, by tables and by what Unicode calls them; for comparing, not for reading."""

import re
import unicodedata
from functools import lru_cache

# Romanisations differ; `sound` irons that out afterwards.
_CYRILLIC = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґўјљњћђџѓќѕ",
        [
            "a",
            "b",
            "v",
            "g",
            "d",
            "e",
            "e",
            "zh",
            "z",
            "i",
            "i",
            "k",
            "l",
            "m",
            "n",
            "o",
            "p",
            "r",
            "s",
            "t",
            "u",
            "f",
            "kh",
            "ts",
            "ch",
            "sh",
            "shch",
            "_",
            "y",
            "_",
            "e",
            "yu",
            "ya",
            "i",
            "i",
            "e",
            "g",
            "u",
            "j",
            "lj",
            "nj",
            "c",
            "dj",
            "dz",
            "g",
            "k",
            "dz",
        ],
        strict=True,
    )
)
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρσςτυφχψω",
        [
            "a",
            "v",
            "g",
            "d",
            "e",
            "z",
            "i",
            "th",
            "i",
            "k",
            "l",
            "m",
            "n",
            "x",
            "o",
            "p",
            "r",
            "s",
            "s",
            "t",
            "y",
            "f",
            "ch",
            "ps",
            "o",
        ],
        strict=True,
    )
)
_ARABIC = dict(
    zip(
        "ابتثجحخدذرزسشصضطظعغفقكلمنهويىةءآأإؤئپچژگک",
        [
            "a",
            "b",
            "t",
            "th",
            "j",
            "h",
            "kh",
            "d",
            "dh",
            "r",
            "z",
            "s",
            "sh",
            "s",
            "d",
            "t",
            "z",
            "_",
            "gh",
            "f",
            "q",
            "k",
            "l",
            "m",
            "n",
            "h",
            "w",
            "y",
            "a",
            "a",
            "_",
            "a",
            "a",
            "i",
            "w",
            "y",
            "p",
            "ch",
            "zh",
            "g",
            "k",
        ],
        strict=True,
    )
)
_HEBREW = dict(
    zip(
        "אבגדהוזחטיכךלמםנןסעפףצץקרשת",
        [
            "a",
            "b",
            "g",
            "d",
            "h",
            "v",
            "z",
            "h",
            "t",
            "y",
            "k",
            "k",
            "l",
            "m",
            "m",
            "n",
            "n",
            "s",
            "a",
            "p",
            "p",
            "ts",
            "ts",
            "k",
            "r",
            "sh",
            "t",
        ],
        strict=True,
    )
)
_TABLES = {**_CYRILLIC, **_GREEK, **_ARABIC, **_HEBREW}
# Scripts whose letters Unicode names by their sound.
_NAMED = re.compile(
    r"^(KATAKANA|HIRAGANA|HANGUL SYLLABLE|DEVANAGARI|BENGALI|TAMIL|TELUGU|GEORGIAN|ARMENIAN)\b.* (\w+)$"
)
_INHERENT = ("DEVANAGARI", "BENGALI", "TAMIL", "TELUGU")
_LATIN = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ə": "a"}


@lru_cache(maxsize=65_536)
def without_marks(text: str) -> str:
    """Case folded, in compatibility form, without accents of Latin, Greek and Cyrillic letters."""
    flat = unicodedata.normalize("NFKC", text).casefold()
    flat = "".join(_LATIN.get(letter, letter) for letter in flat)
    found: list[str] = []
    for letter in unicodedata.normalize("NFD", flat):
        if unicodedata.combining(letter) and found and ord(found[-1]) < 0x530:
            continue
        found.append(letter)
    return unicodedata.normalize("NFC", "".join(found))


@lru_cache(maxsize=65_536)
def in_latin(text: str) -> str:
    """The folded text in Latin letters, where its scripts are known."""
    return "".join(map(_latin_letter, without_marks(text))).replace("_", "")


@lru_cache(maxsize=4_096)
def _latin_letter(letter: str) -> str:
    if letter.isascii():
        return letter
    if letter in _TABLES:
        return _TABLES[letter]
    name = unicodedata.name(letter, "")
    if "VOWEL SIGN" in name or name.endswith(("VIRAMA", "NUKTA")):
        return name.rsplit(" ", 1)[1].lower() if "SIGN" in name and "VIRAMA" not in name and "NUKTA" not in name else ""
    found = _NAMED.match(name)
    if found is None:
        return letter
    said = found[2].lower()
    # An inherent vowel is a vowel, or none where a sign follows.
    return said.removesuffix("a") if found[1] in _INHERENT and len(said) > 1 else said


_SOUNDS = tuple(
    (re.compile(pattern), by)
    for pattern, by in (
        (r"shch|sch|tch|tsh|cz|ch", "C"), (r"sh|sz|sj", "S"), (r"zh|dj|dzh|dz|j", "J"), (r"kh|gh", "h"), (r"ph", "f"),
        (r"th", "t"), (r"ck|q|c(?=[aoukrl]|$)", "k"), (r"c", "s"), (r"x", "ks"), (r"[wb]", "v"), (r"ts|tz", "s"), (r"z", "s"),
        (r"[yiej]+", "i"), (r"[aou]+", "a"), (r"(.)\1+", r"\1"),
    )
)  # fmt: skip


@lru_cache(maxsize=65_536)
def sound(latin: str) -> str:
    """A rough key of how a word in Latin letters sounds; equal for most romanisations of one name."""
    text = re.sub(r"[^a-z0-9 ]", "", latin)
    for pattern, by in _SOUNDS:
        text = pattern.sub(by, text)
    return text


def script_of(text: str) -> str:
    """The script of most letters: the first word of their Unicode names."""
    counts: dict[str, int] = {}
    for letter in text:
        if letter.isalpha():
            script = "LATIN" if letter.isascii() else unicodedata.name(letter, "OTHER").split(" ")[0]
            counts[script] = counts.get(script, 0) + 1
    return max(counts, key=lambda script: counts[script]) if counts else ""
