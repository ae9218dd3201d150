"""A name in the forms that are compared: without marks, without what kind of company it is, its words and initials."""

import re
from dataclasses import dataclass
from functools import lru_cache

from app.text.duplicates.letters import in_latin, script_of, sound, without_marks

# Of many countries; compared without dots. Longer ones first.
_LEGAL = {
    *[
        "inc",
        "incorporated",
        "corp",
        "corporation",
        "co",
        "company",
        "ltd",
        "limited",
        "llc",
        "llp",
        "lp",
        "plc",
        "pllc",
        "gmbh",
        "mbh",
        "ag",
        "kg",
        "kgaa",
        "ohg",
        "ug",
        "ev",
        "se",
        "sa",
        "sas",
        "sarl",
    ],
    *[
        "srl",
        "spa",
        "snc",
        "bv",
        "nv",
        "ab",
        "as",
        "asa",
        "oy",
        "oyj",
        "aps",
        "kft",
        "zrt",
        "doo",
        "dd",
        "jsc",
        "ojsc",
        "pjsc",
        "cjsc",
        "pty",
        "pte",
        "sdn",
        "bhd",
        "kk",
    ],
    *[
        "ооо",
        "оао",
        "зао",
        "пао",
        "ао",
        "ип",
        "тов",
        "ат",
        "株式会社",
        "有限会社",
        "有限公司",
        "股份有限公司",
        "集团",
        "주식회사",
        "ش.م.ل",
    ],
}
_LEGAL_ENDINGS = ("股份有限公司", "有限责任公司", "有限公司", "株式会社", "有限会社", "주식회사")
_TITLES = {
    "mr",
    "mrs",
    "ms",
    "dr",
    "prof",
    "professor",
    "sir",
    "dame",
    "lord",
    "lady",
    "rev",
    "st",
    "saint",
    "captain",
    "capt",
    "president",
    "king",
    "queen",
    "herr",
    "frau",
}
_SMALL = {
    "the",
    "a",
    "an",
    "of",
    "and",
    "und",
    "et",
    "y",
    "der",
    "die",
    "das",
    "de",
    "la",
    "le",
    "el",
    "los",
    "las",
    "les",
    "du",
    "des",
    "van",
    "von",
    "di",
    "da",
    "do",
}
_AND = {"and", "und", "et", "и"}
_JOINERS = {*_AND, "the"}
_NUMBERS = {
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "first": "1",
    "second": "2",
    "third": "3",
}
_ROMAN = re.compile(r"(?=[ivx])x{0,3}(ix|iv|v?i{0,3})")
_QUALIFIER = re.compile(r"\s*[(\[（【]([^()\[\]（）【】]*)[)\]）】]\s*$")
_LEADING = re.compile(r"\s*\(([^()]*)\)[\s,]*([^()]*)$")
_LEGAL_AFTER = re.compile(r"\)([^()]*)$")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_VALUES = {"i": 1, "v": 5, "x": 10}


@dataclass(frozen=True)
class Form:
    """One name. `words` are folded, `numbers` what counts or orders; `core` leaves out company forms, titles, articles."""

    name: str
    words: tuple[str, ...]
    core: tuple[str, ...]
    joined: str
    numbers: tuple[str, ...]
    qualifier: str
    latin: str
    sound: str
    script: str
    initials: str

    @property
    def core_joined(self) -> str:
        return "".join(self.core)


@lru_cache(maxsize=200_000)
def form_of(name: str) -> Form:
    base, qualifier = _without_qualifier(name)
    text = without_marks(base).replace("&", " and ").replace("+", " plus ")
    # Letters of an abbreviation: J.R.R. and U.S.A.
    text = re.sub(r"\b([^\W\d_])\.(?=[^\W\d_]\.|\s|$)", r"\1", text)
    words = tuple(word.replace("’", "'").replace("'", "") for word in _WORD.findall(text))
    plain = tuple(_number(word, n) for n, word in enumerate(words))
    core = _core(plain)
    latin = " ".join(in_latin(word) for word in core)
    return Form(
        name=name,
        words=plain,
        core=core,
        joined="".join(word for word in plain if word not in _JOINERS) or "".join(plain),
        numbers=tuple(sorted(digits for word in plain for digits in re.findall(r"\d+", word))),
        qualifier=" ".join(_WORD.findall(without_marks(qualifier))),
        latin=latin,
        sound="".join(sound(latin).split()),
        script=script_of(base),
        initials="".join(word[0] for word in words if word not in _SMALL),
    )


def _without_qualifier(name: str) -> tuple[str, str]:
    """The name, and what tells it from others of that name: in parentheses, or after the comma of a title."""
    found = _LEGAL_AFTER.search(name)
    if (
        found
        and found[1].strip()
        and all(word in _LEGAL for word in _WORD.findall(without_marks(found[1]).replace(".", "")))
    ):
        name = name[: found.start(1)].rstrip(" ,")
    if (found := _LEADING.match(name)) and found[2].strip():
        return found[2], found[1]
    if (found := _QUALIFIER.search(name)) and name[: found.start()].strip():
        return name[: found.start()], found[1]
    base, comma, rest = name.partition(", ")
    if comma and len(base.split()) > 1 and len(rest.split()) > 1:
        return base, rest
    return name, ""


def _number(word: str, place: int) -> str:
    if word in _NUMBERS:
        return _NUMBERS[word]
    if place and _ROMAN.fullmatch(word):
        values = [_VALUES[letter] for letter in word]
        return str(sum(-v if v < max(values[n:]) else v for n, v in enumerate(values)))
    return word


def _core(words: tuple[str, ...]) -> tuple[str, ...]:
    kept = list(words)
    while len(kept) > 1 and kept[-1] in _LEGAL:
        kept.pop()
    while len(kept) > 1 and (kept[0] in _TITLES or kept[0] in _LEGAL or kept[0] == "the"):
        kept.pop(0)
    for ending in _LEGAL_ENDINGS:
        if kept[-1:] and kept[-1].endswith(ending) and kept[-1] != ending:
            kept[-1] = kept[-1].removesuffix(ending)
    return tuple(word for word in kept if word not in _AND) or words
