"""LightRAG's tokenizer: lossless, copyable, at ease with any length."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.retrieval.lightrag.names import MAX_BYTES, MAX_CHARS, shorten, shorten_names
from app.retrieval.lightrag.tokenizer import engine_tokenizer
from app.text.tokens import count_tokens

TOKENIZER = engine_tokenizer()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_decoding_gives_the_text_back(text: str) -> None:
    tokens = TOKENIZER.encode(text)
    assert TOKENIZER.decode(tokens) == text
    assert len(tokens) == count_tokens(text)


@pytest.mark.parametrize("text", ["<|endoftext|> is text", "a\ud800b", ""])
def test_special_words_and_broken_characters_are_text(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text.replace("\ud800", "?")


def test_tokens_cut_inside_a_character_still_decode() -> None:
    tokens = TOKENIZER.encode("x🧑🏽‍🚀龘")
    for end in range(len(tokens) + 1):
        assert "x🧑🏽‍🚀龘".startswith(TOKENIZER.decode(tokens[:end]))
    for start in range(len(tokens)):
        TOKENIZER.decode(tokens[start:])


def test_long_texts_and_copies_are_fine() -> None:
    text = "word " * 500_000
    copied = copy.deepcopy(TOKENIZER)
    assert copied.decode(copied.encode(text)) == text
    assert len(copied.encode("a" * 1_000_000)) > 0


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=1500))
def test_shortened_names_fit_and_stay_as_they_are_when_shortened_again(name: str) -> None:
    short = shorten(name)
    assert len(short) <= MAX_CHARS
    assert len(short.encode()) <= MAX_BYTES
    assert shorten(short) == short
    if len(name) <= MAX_CHARS and len(name.encode()) <= MAX_BYTES:
        assert short == name


def test_an_answer_keeps_everything_but_its_longest_names() -> None:
    long = "名" * 300
    answer = f"entity<|#|>{long}<|#|>Place<|#|>{long} is long\nrelation<|#|>Short<|#|>{long}<|#|>k<|#|>d\n<|COMPLETE|>"
    shortened, whole = shorten_names(answer)
    kept = shortened.split("\n")
    assert whole == {shorten(long): long}
    assert kept[0] == f"entity<|#|>{shorten(long)}<|#|>Place<|#|>{long} is long"
    assert kept[1] == f"relation<|#|>Short<|#|>{shorten(long)}<|#|>k<|#|>d"
    assert kept[2] == "<|COMPLETE|>"
