"""How likely two names mean one thing, from 0 to 1, and for which reason. Pure, and without any model."""

import re
from dataclasses import dataclass

from app.text.duplicates.forms import Form
from app.text.duplicates.letters import in_latin, sound

_NUMERONYM = re.compile(r"([^\W\d_])(\d{1,2})([^\W\d_])")
# From here on a pair is worth a person's look: `make eval-duplicates` gives precision and recall for it.
PROPOSED = 0.75
# Short names are near to many others; these many characters bear one typing error each.
CHARACTERS_AN_ERROR = 8
MIN_TYPO_CHARACTERS = 5
MIN_CHARACTERS_BESIDE_SHORT = 10
MAX_WORDS_LEFT_OUT = 3
_GENERATIONS = {"jr", "sr", "junior", "senior", "2", "3", "younger", "elder", "not", "without", "anti", "new", "old"}
_ENDINGS = ("a", "e")
_ENDINGS_ALONE = ("s", "a", "n", "e", "o", "i", "an", "ia", "en", "er", "es")


_CONSONANTS = str.maketrans({"C": "k", "S": "s", "J": "", "a": "", "i": "", "h": ""})


@dataclass(frozen=True)
class Likeness:
    """`reason` is a word of ours: normalised_form, legal_suffix, word_order, abbreviation, transliteration, typo, …"""

    score: float
    reason: str


Words = tuple[str, ...]
NOTHING = Likeness(0.0, "")


def likeness(one: Form, other: Form) -> Likeness:
    """Symmetric."""
    if one.numbers != other.numbers and not _is_numeronym(one, other) and not _is_scanned(one, other):
        return NOTHING
    found = max(
        (_normalised(one, other), _abbreviated(one, other), _transliterated(one, other), _mistyped(one, other)),
        key=lambda each: each.score,
    )
    return _qualified(found, one, other)


def _qualified(found: Likeness, one: Form, other: Form) -> Likeness:
    """What stands in parentheses tells things of one name apart."""
    left, right = set(one.qualifier.split()), set(other.qualifier.split())
    if left == right or (left and right and _is_one_qualifier(one, other)):
        return found
    if left and right:
        is_part = left < right or right < left
        return Likeness(found.score * (0.97 if is_part else 0.4), "qualifier" if is_part else found.reason)
    return Likeness(found.score * 0.93, "qualifier")


def _is_one_qualifier(one: Form, other: Form) -> bool:
    left, right = one.qualifier, other.qualifier
    if re.findall(r"\d+", left) != re.findall(r"\d+", right):
        return False
    if one.script != other.script:
        left, right = sound(in_latin(left)), sound(in_latin(right))
    allowed = max(1, min(len(left), len(right)) // 5)
    return errors_between(left.replace(" ", ""), right.replace(" ", ""), allowed) <= allowed


def _normalised(one: Form, other: Form) -> Likeness:
    if one.joined == other.joined:
        return Likeness(0.99, "normalised_form")
    if one.core_joined == other.core_joined:
        return Likeness(0.96, "legal_suffix")
    if len(one.core) > 1 and sorted(one.core) == sorted(other.core):
        return Likeness(0.93, "word_order")
    return NOTHING


def _abbreviated(one: Form, other: Form) -> Likeness:
    if _is_numeronym(one, other):
        return Likeness(0.95, "abbreviation")
    short, long = sorted((one, other), key=lambda form: len(form.joined))
    if _is_acronym(short, long):
        return Likeness(0.9, "abbreviation")
    if len(short.core) == len(long.core) > 1 and _agree_by_initials(short.core, long.core):
        return Likeness(0.9, "abbreviation")
    return _shortened(short.core, long.core)


def _shortened(short: tuple[str, ...], long: tuple[str, ...]) -> Likeness:
    """Middle names or initials that are left out; the first and the last word are told."""
    if len(short) < 2 or not 0 < len(long) - len(short) <= MAX_WORDS_LEFT_OUT or not _is_subsequence(short, long):
        return NOTHING
    out = [word for word in long if word not in short]
    if short[0] == long[0] and short[-1] == long[-1]:
        return Likeness(0.9 if all(len(word) == 1 for word in out) else 0.86, "shortened")
    # Another given name before, a family name behind, or a generation: more often another thing.
    is_told = len(short) > 2 and not set(out) & _GENERATIONS
    return Likeness(0.82, "shortened") if is_told and len(out) == 1 else NOTHING


def _is_acronym(short: Form, long: Form) -> bool:
    letters = short.joined
    if not 2 < len(letters) <= 8 or len(short.words) > 1 or len(long.words) < 3 or not short.name.isupper():
        return False
    return letters in (long.initials, "".join(word[0] for word in long.words))


def _is_numeronym(one: Form, other: Form) -> bool:
    for short, long in ((one, other), (other, one)):
        found = _NUMERONYM.fullmatch(short.joined)
        if found and len(long.words) == 1:
            word = long.joined
            if word[0] == found[1] and word[-1] == found[3] and len(word) - 2 == int(found[2]):
                return True
    return False


def _agree_by_initials(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    """E. Petrova, Elena Petrova: the last word is whole, the others at least by their first letter."""
    if short[-1] != long[-1] or len(short[-1]) < 3:
        return False
    pairs = list(zip(short[:-1], long[:-1], strict=True))
    return any(len(a) == 1 or len(b) == 1 for a, b in pairs) and all(
        a == b or (min(len(a), len(b)) == 1 and a[0] == b[0]) for a, b in pairs
    )


def _is_subsequence(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    rest = iter(long)
    return all(word in rest for word in short)


def _transliterated(one: Form, other: Form) -> Likeness:
    if one.script == other.script or not one.script or not other.script:
        return NOTHING
    left, right = one.latin.replace(" ", ""), other.latin.replace(" ", "")
    if not left.isascii() or not right.isascii() or min(len(left), len(right)) < 3:
        return NOTHING
    if left == right:
        return Likeness(0.95, "transliteration")
    if one.sound == other.sound and len(one.sound) >= 3:
        return Likeness(0.92, "transliteration")
    allowed = max(1, len(one.sound) // 6)
    distance = errors_between(one.sound, other.sound, allowed)
    if distance <= allowed and min(len(one.sound), len(other.sound)) >= 5:
        return Likeness(0.88, "transliteration")
    left, right = consonants(one.sound), consonants(other.sound)
    is_close = len(one.core) == len(other.core) and left == right and len(left) >= 4
    return Likeness(0.87, "transliteration") if is_close else NOTHING


def _mistyped(one: Form, other: Form) -> Likeness:
    if (set(one.core) ^ set(other.core)) & _GENERATIONS:
        return NOTHING
    found = _by_errors(one.core, other.core)
    # The company's form may be what is misspelt.
    return (
        found
        if found.score or (one.core, other.core) == (one.words, other.words)
        else _by_errors(one.words, other.words)
    )


def _by_errors(one: Words, other: Words) -> Likeness:
    left, right = "".join(one), "".join(other)
    shortest = min(len(left), len(right))
    if shortest < MIN_TYPO_CHARACTERS or (left[0] != right[0] and shortest < 8):
        return NOTHING
    if _as_scanned(left) == _as_scanned(right):
        return Likeness(0.94, "typo")
    allowed = min(max(1, shortest // CHARACTERS_AN_ERROR), 3)
    distance = errors_between(left, right, allowed)
    if distance > allowed or _are_other_words(one, other):
        return NOTHING
    return Likeness(0.95 - 0.45 * distance / shortest - (0.05 if shortest < 8 else 0.0), "typo")


def _are_other_words(one: Words, other: Words) -> bool:
    """Whether a word was replaced by another one: the errors in one word are too many, or of a kind that has a meaning."""
    if len(one) != len(other):
        return False
    length = min(len("".join(one)), len("".join(other)))
    for n, (a, b) in enumerate(zip(one, other, strict=True)):
        if a == b:
            continue
        longest = max(len(a), len(b))
        if longest < 4 and length < MIN_CHARACTERS_BESIDE_SHORT:
            return True
        # Tim and Jim, Anna and Hanna.
        if n == 0 and len(one) > 1 and longest < 6 and a[0] != b[0] and a[0] not in b[:2] and b[0] not in a[:2]:
            return True
        if errors_between(a, b, 3) > max(1, longest // 3) or _has_other_ending(a, b, is_alone=len(one) == 1):
            return True
    return False


def _has_other_ending(a: str, b: str, *, is_alone: bool) -> bool:
    """Endings that make another word: gender, and for a word that stands alone also plural and nationality."""
    short, long = sorted((a, b), key=len)
    if len(a) == len(b):
        return a[:-1] == b[:-1] and (len(a) < 9 if is_alone else {a[-1], b[-1]} <= set("aeiouy"))
    return long.startswith(short) and long[len(short) :] in (_ENDINGS_ALONE if is_alone else _ENDINGS)


_SCANNED = str.maketrans("0158|", "oissl")


def _as_scanned(text: str) -> str:
    """What reading from paper confuses is made equal."""
    flat = text.translate(_SCANNED).replace("rn", "m").replace("vv", "w").replace("cl", "d").replace("l", "i")
    return flat.replace("ii", "u")


def _is_scanned(one: Form, other: Form) -> bool:
    """Whether digits stand within words, where letters are read as such."""
    left, right = one.core_joined, other.core_joined
    has_mixed = any(re.search(r"[^\W\d_]\d|\d[^\W\d_]", word) for form in (one, other) for word in form.core)
    return has_mixed and len(left) >= MIN_TYPO_CHARACTERS and _as_scanned(left) == _as_scanned(right)


def errors_between(one: str, other: str, limit: int) -> int:
    """Insertions, deletions, changes and swaps of neighbours (optimal string alignment); `limit + 1` if there are more."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        new = [i, *([0] * len(other))]
        for j, b in enumerate(other, 1):
            new[j] = min(row[j] + 1, new[j - 1] + 1, row[j - 1] + (a != b))
            if before and j > 1 and a == other[j - 2] and one[i - 2] == b:
                new[j] = min(new[j], before[j - 2] + 1)
        if min(new) > limit:
            return limit + 1
        before, row = row, new
    return min(row[-1], limit + 1)


def consonants(heard: str) -> str:
    """Of a key of sound, what is left where alphabets were exchanged letter by letter."""
    return heard.translate(_CONSONANTS)
