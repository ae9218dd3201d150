"""Token counts: equal to the vocabulary's own, and safe for whatever text comes."""

import warnings

from app.text.tokens import count_tokens


def test_counts_equal_the_public_encoding() -> None:
    with warnings.catch_warnings():
        # The package opens its data in a way that Python is about to drop; Trellis does not import it.
        warnings.simplefilter("ignore", DeprecationWarning)
        from bpe_openai import get_encoding  # noqa: PLC0415

        encoding = get_encoding("o200k_base")
    for text in ("", "Hello world.", "今天天气很好。", "Привет", '{"a": [1, 2]}', "  \n\n", "👩‍👩‍👧 ok"):
        assert count_tokens(text) == len(encoding.encode_ordinary(text))


def test_special_tokens_in_text_are_ordinary_characters() -> None:
    assert count_tokens("a<|endoftext|>b") > 3


def test_lone_surrogates_and_millions_of_characters_are_counted() -> None:
    assert count_tokens("a\ud800b") >= 2
    assert count_tokens("x" * 2_000_000) == 250_000
