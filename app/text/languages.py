"""Guesses the language of a text from its script and function words: cheap, and good enough to choose rules by."""

import re
from collections import Counter
from typing import Final

from app.text.concepts.stopwords import BY_LANGUAGE
from app.text.concepts.words import normalise, tokens

UNDETERMINED: Final = "und"  # ISO 639-2: no language can be told
_SAMPLE_CHARS: Final = 4_000
_SCRIPTS: Final = {
    "han": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "kana": re.compile("[\u3041-\u30fa]"),
    "ko": re.compile("[\uac00-\ud7af]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "hi": re.compile("[\u0900-\u097f]"),
    "ar": re.compile("[\u0600-\u06ff\u0750-\u077f]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "ru": re.compile("[\u0400-\u04ff]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "latin": re.compile("[A-Za-z\u00c0-\u024f]"),
}
# A Chinese character or a kana says as much as about three letters of a word; Latin letters are also the foreign names
# and abbreviations in texts of every other script.
_WEIGHTS: Final = {"han": 3, "kana": 3, "ko": 2, "latin": 0.4}
_KANA_SHARE: Final = 0.1
_LATIN: Final = ("en", "de", "fr", "es", "it", "pt", "nl")
_UMLAUT: Final = re.compile("[äöüÄÖÜß]")


def detect_language(text: str) -> str:
    """The ISO 639-1 code of the language that most of `text` seems to be in, or `und` where nothing tells.

    Judged on the first 4,000 characters. Within Cyrillic, Arabic and Devanagari script the largest language is meant.
    """
    sample = text[:_SAMPLE_CHARS]
    counts = {name: len(pattern.findall(sample)) * _WEIGHTS.get(name, 1) for name, pattern in _SCRIPTS.items()}
    east_asian = counts.pop("han") + counts["kana"]
    kana = counts.pop("kana")
    counts["zh"] = east_asian
    script = max(counts, key=lambda name: counts[name])
    if not counts[script]:
        return UNDETERMINED
    if script == "zh":
        return "ja" if kana > east_asian * _KANA_SHARE else "zh"
    return _latin_language(sample) if script == "latin" else script


def _latin_language(sample: str) -> str:
    """The language whose function words occur most often; English, the likeliest, where a short text has none."""
    votes: Counter[str] = Counter()
    for token in tokens(sample):
        word = normalise(token.text)
        votes.update(language for language in _LATIN if word in BY_LANGUAGE[language])
    if _UMLAUT.search(sample):
        votes["de"] += 1
    best, count = max(((language, votes[language]) for language in _LATIN), key=lambda vote: vote[1])
    return best if count else "en"
