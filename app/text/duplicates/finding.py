"""Pairs of names that are worth comparing, among many, and groups of those that are alike. New names are added one by one."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.text.duplicates.forms import Form, form_of
from app.text.duplicates.likeness import consonants, likeness

# A key that so many names share tells nothing apart.
MAX_SHARED = 60
RAREST_GRAMS = 8
GRAM = 3


@dataclass(frozen=True)
class AlikePair:
    """Two names in code point order."""

    one: str
    other: str
    score: float
    reason: str


class DuplicateFinder:
    """Compares each name with those that share a key with it: an exact form, initials, a sound, or rare trigrams."""

    def __init__(self, min_score: float) -> None:
        self._min_score = min_score
        self._by_key: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._by_gram: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._names: set[str] = set()
        self.pairs: dict[tuple[str, str], AlikePair] = {}

    def add(self, names: Iterable[str]) -> None:
        """Compare these with each other and with all that were added before."""
        new = [name for name in dict.fromkeys(names) if name not in self._names]
        forms = {name: form_of(name) for name in new}
        # Grams of a whole batch are known before any of them is called rare.
        for name, form in forms.items():
            for gram in _grams(form):
                self._by_gram[gram][name] = None
        for name, form in forms.items():
            for other in self._candidates(form):
                self._compare(form, form_of(other))
            for key in set(_keys(form)):
                self._by_key[key][name] = None
            self._names.add(name)

    def remove(self, names: Iterable[str]) -> None:
        """Forget names, and with them all pairs that they are in."""
        gone = set(names) & self._names
        forms = [form_of(name) for name in gone]
        _take_out(self._by_key, ((key, form.name) for form in forms for key in set(_keys(form))))
        _take_out(self._by_gram, ((gram, form.name) for form in forms for gram in _grams(form)))
        self._names -= gone
        self.pairs = {pair: found for pair, found in self.pairs.items() if gone.isdisjoint(pair)}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._names)

    def _candidates(self, form: Form) -> set[str]:
        found: set[str] = set()
        for key in set(_keys(form)):
            known = self._by_key[key]
            if len(known) <= MAX_SHARED:
                found.update(known)
        shared: Counter[str] = Counter()
        grams = sorted(_grams(form), key=lambda gram: len(self._by_gram[gram]))
        for gram in grams[:RAREST_GRAMS]:
            known = self._by_gram[gram]
            if len(known) <= 4 * MAX_SHARED:
                shared.update(known.keys())
        found.update(name for name, n in shared.items() if n >= 2 or len(grams) < 4)
        found.discard(form.name)
        return found

    def _compare(self, one: Form, other: Form) -> None:
        pair = (one.name, other.name) if one.name < other.name else (other.name, one.name)
        if pair not in self.pairs:
            found = likeness(one, other)
            if found.score >= self._min_score:
                self.pairs[pair] = AlikePair(*pair, found.score, found.reason)


def _take_out(index: dict[str, dict[str, None]], entries: Iterable[tuple[str, str]]) -> None:
    for key, name in entries:
        index[key].pop(name, None)
        if not index[key]:
            del index[key]


def _keys(form: Form) -> Iterator[str]:
    yield "=" + form.joined
    yield "c" + form.core_joined
    yield "w" + " ".join(sorted(form.core))
    if form.sound:
        yield "s" + form.sound
        yield "k" + consonants(form.sound)
    if len(form.words) >= 3:
        yield "a" + form.initials
        yield "a" + "".join(word[0] for word in form.words)
    elif len(form.words) == 1 and len(form.joined) <= 8:
        yield "a" + form.joined
    if len(form.core) > 1:
        yield f"p{form.core[0][0]} {form.core[-1]}"
    if len(form.words) == 1:
        word = form.joined
        yield f"n{word[0]}{len(word) - 2}{word[-1]}" if not any(letter.isdigit() for letter in word) else "n" + word


def _grams(form: Form) -> set[str]:
    text = f"\x02{form.core_joined}\x03"
    return {text[n : n + GRAM] for n in range(len(text) - GRAM + 1)}


def groups_of(pairs: Iterable[AlikePair], apart: Iterable[frozenset[str]] = ()) -> list[list[AlikePair]]:
    """Pairs that hang together, each group by score; a group never holds two names that are known to be apart."""
    forbidden = set(apart)
    group_of: dict[str, int] = {}
    members: dict[int, set[str]] = {}
    kept: defaultdict[int, list[AlikePair]] = defaultdict(list)
    for pair in sorted(pairs, key=lambda found: (-found.score, found.one, found.other)):
        ids = [group_of.get(name) for name in (pair.one, pair.other)]
        together: set[str] = {pair.one, pair.other}.union(*(members[n] for n in ids if n is not None))
        if any(frozenset((a, b)) in forbidden for a in together for b in together if a < b):
            continue
        target = next((n for n in ids if n is not None), len(members) + len(group_of))
        for n in {n for n in ids if n is not None and n != target}:
            kept[target] += kept.pop(n, [])
            members.pop(n)
        members[target] = together
        group_of |= dict.fromkeys(together, target)
        kept[target].append(pair)
    return sorted((sorted(found, key=lambda p: -p.score) for found in kept.values()), key=lambda found: -found[0].score)


def pairs_of(names: Sequence[str], min_score: float) -> Mapping[tuple[str, str], AlikePair]:
    """All alike pairs among `names`."""
    finder = DuplicateFinder(min_score)
    finder.add(names)
    return finder.pairs
