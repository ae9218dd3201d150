"""Words of scripts without capitals: Arabic, Hebrew, Hindi, Korean, and those that are written without spaces."""

import re
from collections.abc import Iterator

import rjieba

from app.text.concepts.stopwords import STOP_WORDS
from app.text.concepts.words import Script, Token, normalise

MIN_SPACED_CHARS = 3
MIN_CJK_CHARS = 2
_ARABIC = re.compile("^[\u0600-\u06ff]")
_HANGUL = re.compile("^[\uac00-\ud7af]")
# Article and conjunctions that are written as one word with the noun, longest first.
_ARABIC_PREFIX = re.compile("^(?:وال|بال|كال|فال|ولل|ال|لل)")
_KOREAN_PARTICLE = re.compile(
    "(?:에서는|으로는|에서|에게|으로|까지|부터|처럼|보다|하고|은|는|이|가|을|를|의|에|와|과|도|로|만)$"
)
_MIN_KOREAN_STEM = 2
_KANA_OR_HAN = re.compile("[\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff]+|[\u3041-\u309f]+|[^\u3040-\u30ff\u31f0-\u31ff]+")
_HIRAGANA = re.compile("^[\u3041-\u309f]")
_KATAKANA = re.compile("^[\u30a1-\u30ff\u31f0-\u31ff]")


def caseless_words(token: Token) -> Iterator[str]:
    """The words of a caseless token that are worth a concept of their own, as written."""
    if token.script is Script.CASELESS:
        word = stem(token.text)
        minimum = _MIN_KOREAN_STEM if _HANGUL.match(word) else MIN_SPACED_CHARS
        if len(word) >= minimum and not _is_stop(token.text, word):
            yield word
    elif token.script is Script.CJK:
        for word in cjk_words(token.text):
            if len(word) >= MIN_CJK_CHARS and not is_hiragana(word) and normalise(word) not in STOP_WORDS:
                yield word
    else:
        yield from unspaced_pieces(token.text)


def _is_stop(*forms: str) -> bool:
    return any(normalise(form) in STOP_WORDS for form in forms)


def stem(word: str) -> str:
    """A word without the article, conjunction or particle that its script writes onto it; a very short rest keeps it."""
    if _ARABIC.match(word):
        rest = _ARABIC_PREFIX.sub("", word)
        return rest if len(rest) >= MIN_SPACED_CHARS else word
    if _HANGUL.match(word):
        rest = _KOREAN_PARTICLE.sub("", word)
        return rest if len(rest) >= _MIN_KOREAN_STEM else word
    return word


def cjk_words(run: str) -> Iterator[str]:
    """The words of a run of Chinese characters and kana: jieba's for the characters, whole runs for each kana script.

    jieba knows no Japanese and would cut kana into single letters.
    """
    for match in _KANA_OR_HAN.finditer(run):
        part = match.group()
        if _KATAKANA.match(part) or _HIRAGANA.match(part):
            yield part
        else:
            yield from rjieba.cut(part)


def is_katakana(word: str) -> bool:
    """Whether a word is written in the kana of foreign names and terms."""
    return _KATAKANA.match(word) is not None


def is_hiragana(word: str) -> bool:
    """Whether a word is written in the kana of endings and function words."""
    return _HIRAGANA.match(word) is not None


def unspaced_pieces(run: str) -> Iterator[str]:
    """Overlapping pieces of a run in a script without spaces and without a dictionary here."""
    size = 4
    for start in range(max(1, len(run) - size + 1)):
        yield run[start : start + size]
