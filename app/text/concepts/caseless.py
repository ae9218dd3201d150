"""Words of scripts without capitals: Arabic, Hebrew, Hindi, Korean, and those that are written without spaces."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import import_module

import rjieba

from app.text.concepts.stopwords import STOP_WORDS
from app.text.concepts.words import Lexeme, Script, normalise

MIN_SPACED_CHARS = 3
MIN_CJK_CHARS = 2
MIN_THAI_CHARS = 3  # one syllable with its vowel sign
_PIECE_CHARS = 3
_CACHED_WORDS = 65_536
_THAI_OR_NOT = re.compile("(?P<thai>[\u0e00-\u0e7f]+)|[^\u0e00-\u0e7f]+")
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


def caseless_words(lexeme: Lexeme) -> Sequence[str]:
    """The words of a caseless token that are worth a concept of their own, as written."""
    words = segments(lexeme)
    if lexeme.script is Script.CASELESS:
        return words
    if lexeme.script is Script.CJK:
        return [word for word in words if len(word) >= MIN_CJK_CHARS and _is_cjk_concept(word)]
    return [word for word in words if len(word) >= MIN_THAI_CHARS and normalise(word) not in STOP_WORDS]


def segments(lexeme: Lexeme) -> Sequence[str]:
    """The words of a caseless token as written; cut once, which is what takes longest in a script without spaces."""
    if lexeme.words is None:
        if lexeme.script is Script.CASELESS:
            lexeme.words = _spaced_word(lexeme.text)
        else:
            lexeme.words = tuple(cjk_words(lexeme.text) if lexeme.script is Script.CJK else unspaced_words(lexeme.text))
    return lexeme.words


def _spaced_word(text: str) -> tuple[str, ...]:
    word = stem(text)
    minimum = _MIN_KOREAN_STEM if _HANGUL.match(word) else MIN_SPACED_CHARS
    is_stop = normalise(text) in STOP_WORDS or normalise(word) in STOP_WORDS
    return (word,) if len(word) >= minimum and not is_stop else ()


@lru_cache(maxsize=_CACHED_WORDS)
def _is_cjk_concept(word: str) -> bool:
    return not is_hiragana(word) and normalise(word) not in STOP_WORDS


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


@cache
def _thai_tokenizer() -> Callable[..., list[str]]:
    # Imported when the first Thai text comes: its dictionary takes 0.6 s and 77 MB.
    tokenizer: Callable[..., list[str]] = import_module("newmm_tokenizer.tokenizer").word_tokenize
    return tokenizer


def unspaced_words(run: str) -> Iterator[str]:
    """The words of a run in a script without spaces: Thai by its dictionary (newmm, longest match over clusters), others,
    for which there is none here, as overlapping pieces of three characters.
    """
    for match in _THAI_OR_NOT.finditer(run):
        part = match.group()
        if match.lastgroup == "thai":
            yield from _thai_tokenizer()(part, keep_whitespace=False)
        else:
            for start in range(max(1, len(part) - _PIECE_CHARS + 1)):
                yield part[start : start + _PIECE_CHARS]
