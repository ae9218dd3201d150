"""Two ways in which names get spoiled, independent of each other: rules are tuned on `typing`, and judged on `paper` too.

`typing` is what people do at a keyboard and in databases; `paper` what scanners, clerks and other alphabets do.
"""

import random
import re
from collections.abc import Callable, Sequence

Corrupt = Callable[[str, random.Random], str]

_NEAR = {
    "a": "qsz",
    "e": "wrd",
    "i": "uok",
    "o": "ipl",
    "n": "bhm",
    "r": "etf",
    "s": "adw",
    "t": "ryg",
    "l": "kpo",
    "c": "xvd",
}
_LEGAL = ("Inc.", "Ltd", "GmbH", "LLC", "Corp.", "S.A.", "AG", "Co., Ltd.")
_CYRILLIC = [
    ("shch", "щ"), ("zh", "ж"), ("kh", "х"), ("ts", "ц"), ("ch", "ч"), ("sh", "ш"), ("yu", "ю"), ("ya", "я"), ("ph", "ф"), ("th", "т"), ("ck", "к"),
    *zip("abvgdeziklmnoprstufhcyjwxq", ["а", "б", "в", "г", "д", "е", "з", "и", "к", "л", "м", "н", "о", "п", "р", "с", "т", "у", "ф", "х", "к", "и", "дж", "в", "кс", "к"], strict=True),
]  # fmt: skip
_GREEK = dict(zip("abgdezhiklmnxoprstufvyc", "αβγδεζηικλμνξοπρστυφβυκ", strict=True))
_SCANS = (
    ("rn", "m"),
    ("m", "rn"),
    ("l", "1"),
    ("o", "0"),
    ("cl", "d"),
    ("w", "vv"),
    ("h", "b"),
    ("e", "c"),
    ("S", "5"),
    ("B", "8"),
)


def _inner(name: str, rng: random.Random) -> int:
    letters = [n for n in range(1, len(name) - 1) if name[n].isalpha()]
    return rng.choice(letters) if letters else 0


def _swap(name: str, rng: random.Random) -> str:
    n = _inner(name, rng)
    return name[:n] + name[n + 1 : n + 2] + name[n] + name[n + 2 :]


def _drop(name: str, rng: random.Random) -> str:
    n = _inner(name, rng)
    return name[:n] + name[n + 1 :]


def _double(name: str, rng: random.Random) -> str:
    n = _inner(name, rng)
    return name[:n] + name[n] + name[n:]


def _near(name: str, rng: random.Random) -> str:
    n = _inner(name, rng)
    return name[:n] + rng.choice(_NEAR.get(name[n].lower(), "e")) + name[n + 1 :]


def _case(name: str, rng: random.Random) -> str:
    return rng.choice((name.upper(), name.lower()))


def _punctuation(name: str, _: random.Random) -> str:
    return re.sub(r"[.,'’:!?-]+", " ", name).strip()


def _legal(name: str, rng: random.Random) -> str:
    return f"{name} {rng.choice(_LEGAL)}"


def _reversed(name: str, _: random.Random) -> str:
    first, _space, last = name.rpartition(" ")
    return f"{last}, {first}" if first else name


def _initial(name: str, _: random.Random) -> str:
    words = name.split()
    return " ".join([f"{words[0][0]}.", *words[1:]]) if len(words) > 1 else name


def _acronym(name: str, _: random.Random) -> str:
    words = re.findall(r"[^\W\d_]+", name)
    return "".join(word[0] for word in words).upper() if len(words) > 2 else name.upper()


def _scan(name: str, rng: random.Random) -> str:
    found = [(old, new) for old, new in _SCANS if old in name[1:]]
    if not found:
        return name.upper()
    old, new = rng.choice(found)
    return name[0] + name[1:].replace(old, new, 1)


def _cyrillic(name: str, _: random.Random) -> str:
    text = name.lower()
    for latin, letter in _CYRILLIC:
        text = text.replace(latin, letter)
    return text.title()


def _greek(name: str, _: random.Random) -> str:
    return "".join(_GREEK.get(letter, letter) for letter in name.lower()).title()


def _spacing(name: str, rng: random.Random) -> str:
    return name.replace(" ", rng.choice(("", "-", "  ", "_")))


def _title(name: str, rng: random.Random) -> str:
    return f"{rng.choice(('Mr.', 'Dr', 'Prof.', 'Sir', 'The'))} {name}"


def _ampersand(name: str, _: random.Random) -> str:
    return re.sub(r"\band\b", "&", name) if " and " in name else f"The {name}"


def _middle(name: str, rng: random.Random) -> str:
    words = name.split()
    return " ".join([words[0], rng.choice("ABCDEFGHJKLM") + ".", *words[1:]]) if len(words) == 2 else _title(name, rng)


def _lost(name: str, rng: random.Random) -> str:
    n = _inner(name, rng)
    return name[:n] + name[n + 2 :] if len(name) > 12 else name[:n] + name[n + 1 :]


TYPING: Sequence[Corrupt] = (_swap, _drop, _double, _near, _case, _punctuation, _legal, _reversed, _initial, _acronym)
PAPER: Sequence[Corrupt] = (_scan, _scan, _cyrillic, _greek, _spacing, _title, _ampersand, _middle, _lost)
GENERATORS = {"typing": TYPING, "paper": PAPER}


def corrupted(names: Sequence[str], generator: str, seed: int) -> dict[str, str]:
    """Spoilt name by name, each by one way; those that came out as they were, or as another's name, are left out."""
    rng, ways, known = random.Random(seed), GENERATORS[generator], set(names)  # noqa: S311 - to be repeatable
    found: dict[str, str] = {}
    for name in names:
        spoilt = " ".join(rng.choice(ways)(name, rng).split(" "))
        if spoilt != name and spoilt not in known and spoilt.strip():
            known.add(spoilt)
            found[name] = spoilt
    return found
