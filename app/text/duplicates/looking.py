"""Looks names up by what somebody types: a beginning, a word of it, with errors, in any script."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from app.text.duplicates.letters import in_latin, without_marks

GRAM = 3
# Scores of a hit, by how it matches; below, the share of trigrams.
SAME, BEGINS, WORD_BEGINS, WITHIN = 1.0, 0.95, 0.9, 0.8
LEAST = 0.3


class NameLookup:
    """An index of trigrams over folded names, and over their romanised form."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[str, ...]] = {}
        self._by_gram: defaultdict[str, set[str]] = defaultdict(set)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._texts)

    def replace(self, names: Iterable[str]) -> None:
        """From now on these are the names; only what changed is worked on."""
        wanted = set(names)
        for name in self._texts.keys() - wanted:
            for text in self._texts.pop(name):
                for gram in _grams(text):
                    self._by_gram[gram].discard(name)
        for name in wanted - self._texts.keys():
            texts = _forms(name)
            self._texts[name] = texts
            for text in texts:
                for gram in _grams(text):
                    self._by_gram[gram].add(name)

    def find(self, wanted: str, limit: int) -> list[tuple[str, float]]:
        """Names with their scores from 0 to 1, best first; of equal ones the shorter."""
        forms = _forms(wanted)
        if not any(forms):
            return []
        scores: dict[str, float] = {}
        for text in forms:
            grams = _grams(text)
            shared = Counter(name for gram in grams for name in self._by_gram.get(gram, ()))
            for name, n in shared.items():
                scores[name] = max(scores.get(name, 0.0), self._score(text, len(grams), name, n))
        hits = [(name, score) for name, score in scores.items() if score >= LEAST]
        return sorted(hits, key=lambda hit: (-hit[1], len(hit[0]), hit[0]))[:limit]

    def _score(self, wanted: str, grams: int, name: str, shared: int) -> float:
        best = 0.0
        for text in self._texts[name]:
            if text == wanted:
                return SAME
            if text.startswith(wanted):
                best = max(best, BEGINS)
            elif f" {wanted}" in f" {text}":
                best = max(best, WORD_BEGINS)
            elif wanted in text:
                best = max(best, WITHIN)
        return max(best, 0.85 * shared / grams)


def _forms(name: str) -> tuple[str, ...]:
    flat = " ".join(without_marks(name).split())
    return tuple(dict.fromkeys((flat, " ".join(in_latin(flat).split()))))


def _grams(text: str) -> set[str]:
    """Trigrams of each word with its borders; of scripts without spaces, of the whole."""
    found: set[str] = set()
    for word in text.split():
        bordered = f"\x02{word}\x03"
        found |= {bordered[n : n + GRAM] for n in range(max(1, len(bordered) - GRAM + 1))}
        found |= {word[n : n + 2] for n in range(len(word) - 1)} if not word.isascii() else set()
    return found
