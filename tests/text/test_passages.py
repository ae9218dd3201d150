"""Passages: exact, of whole sentences, under one heading, of about one size, and nothing is lost."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.text.document import BlockKind, SourceText
from app.text.passages import PassageDraft, split_passages
from app.text.tokens import count_tokens
from tests.text.sources import Part, paragraphs, source_of

ENGLISH = "The company was founded by Ada Smith in Berlin and grew quickly in its first years. "
CHINESE = "阿里巴巴由马云在杭州创立，总部位于中国浙江省杭州市余杭区。"


def assert_exact(source: SourceText, passages: list[PassageDraft]) -> None:
    """What holds of all passages of all documents."""
    for index, passage in enumerate(passages):
        assert passage.ordinal == index
        assert passage.text == source.text[passage.char_start : passage.char_end]
        assert passage.text == passage.text.strip() != ""
        assert passage.tokens == count_tokens(passage.text)
    for before, after in pairwise(passages):
        assert before.char_end <= after.char_start
    for block in source.blocks:
        if block.kind == "heading":
            continue
        for position in range(block.char_start, block.char_end):
            if not source.text[position].isspace():
                assert any(passage.char_start <= position < passage.char_end for passage in passages)


def test_english_passages_have_about_130_tokens_and_whole_sentences() -> None:
    source = paragraphs(ENGLISH.strip() + " " + ENGLISH * 60)
    passages = split_passages(source)
    assert_exact(source, passages)
    assert all(100 <= passage.tokens <= 160 for passage in passages[:-1])
    assert all(passage.text.endswith(".") for passage in passages)
    assert passages[0].sentence_count == passages[0].text.count(".")


def test_chinese_passages_have_250_to_400_characters() -> None:
    source = paragraphs(CHINESE * 60)
    passages = split_passages(source)
    assert_exact(source, passages)
    assert all(250 <= len(passage.text) <= 400 for passage in passages[:-1])
    assert all(passage.text.endswith("。") for passage in passages)


def test_short_paragraphs_share_a_passage_and_long_ones_end_it() -> None:
    source = paragraphs(*(f"Point {number} is short." for number in range(6)), ENGLISH * 8)
    passages = split_passages(source)
    assert passages[0].text.startswith("Point 0")
    assert "Point 5" in passages[0].text
    assert_exact(source, passages)


def test_no_passage_crosses_a_heading() -> None:
    source = source_of(
        ("heading", "One", ("One",)),
        ("paragraph", "First body.", ("One",)),
        ("heading", "Two", ("One", "Two")),
        ("paragraph", "Second body.", ("One", "Two")),
        ("heading", "One", ("One",)),
        ("paragraph", "Third body, under a heading of the same name.", ("One",)),
    )
    passages = split_passages(source)
    assert [passage.text for passage in passages] == [
        "First body.", "Second body.", "Third body, under a heading of the same name.",
    ]  # fmt: skip
    assert [passage.heading_path for passage in passages] == [("One",), ("One", "Two"), ("One",)]


def test_a_heading_with_nothing_below_joins_the_passage_that_follows() -> None:
    source = source_of(
        ("heading", "Warranty excluded", ("Warranty excluded",)),
        ("heading", "Terms", ("Terms",)),
        ("paragraph", "The terms are these.", ("Terms",)),
    )
    (passage,) = split_passages(source)
    assert passage.text == "Warranty excluded\n\nTerms\n\nThe terms are these."
    assert passage.heading_path == ("Terms",)


def test_a_last_heading_with_nothing_below_joins_the_passage_before_it() -> None:
    source = source_of(
        ("heading", "Terms", ("Terms",)),
        ("paragraph", "The terms are these.", ("Terms",)),
        ("heading", "Thank you", ("Thank you",)),
    )
    (passage,) = split_passages(source)
    assert passage.text.endswith("Thank you")


def test_a_document_of_headings_alone_is_still_found() -> None:
    source = source_of(*(("heading", f"Chapter {n}", (f"Chapter {n}",)) for n in range(80)))
    passages = split_passages(source)
    assert "Chapter 0" in passages[0].text
    assert "Chapter 79" in passages[-1].text
    assert max(passage.tokens for passage in passages) <= 250


def test_a_parent_heading_is_not_repeated_as_text() -> None:
    source = source_of(
        ("heading", "Manual", ("Manual",)),
        ("heading", "Start", ("Manual", "Start")),
        ("paragraph", "Press the button.", ("Manual", "Start")),
    )
    (passage,) = split_passages(source)
    assert passage.text == "Press the button."
    assert passage.heading_path == ("Manual", "Start")


def test_a_sentence_over_a_page_break_stays_whole_and_names_both_pages() -> None:
    source = source_of(
        ("paragraph", "The sentence begins on one page", ()),
        ("paragraph", "and ends on the next. Then another.", ()),
        pages=[3, 4],
        gaps=[" "],
    )
    (passage,) = split_passages(source)
    assert (passage.page_start, passage.page_end) == (3, 4)
    assert passage.sentence_count == 2


def test_pages_follow_the_characters_of_each_passage() -> None:
    source = source_of(*(("paragraph", ENGLISH * 8, ()) for _ in range(3)), pages=[1, 2, 5])
    assert [(p.page_start, p.page_end) for p in split_passages(source)] == [(1, 1), (2, 2), (5, 5)]


def test_a_table_that_fits_stays_whole_and_a_larger_one_is_cut_between_rows() -> None:
    small = "name | town\n" + "\n".join(f"Person {n} | Town {n}" for n in range(30))
    large = "name | town\n" + "\n".join(f"Person {n} | Town {n}" for n in range(300))
    source = source_of(("table", small, ()), ("table", large, ()))
    passages = split_passages(source)
    assert_exact(source, passages)
    assert passages[0].text == small
    assert 160 < passages[0].tokens <= 400
    assert len(passages) > 5
    assert all(line.count("|") == 1 for passage in passages for line in passage.text.split("\n"))


@pytest.mark.parametrize(
    "line",
    [
        "x" * 200_000,
        json.dumps({f"key{n}": f"value {n}" for n in range(8000)}, separators=(",", ":")),
        "字" * 50_000,
        "ไทย" * 20_000,
        "word " * 40_000,
        "e\u0301" * 30_000,
    ],
    ids=["letters", "minified json", "chinese", "thai", "words", "combining marks"],
)
def test_a_huge_line_without_sentence_ends_is_cut_into_bounded_passages(line: str) -> None:
    source = paragraphs(line.strip())
    passages = split_passages(source)
    assert max(passage.tokens for passage in passages) <= 400
    assert "".join(passage.text for passage in passages).replace(" ", "") == line.replace(" ", "")
    assert not any(passage.text.startswith("\u0301") for passage in passages)


def test_a_sentence_of_200_tokens_is_not_cut() -> None:
    sentence = "It was said that " + ", ".join(f"the part {n} of it" for n in range(33)) + "."
    assert 180 < count_tokens(sentence) < 250
    assert [passage.text for passage in split_passages(paragraphs(sentence))] == [sentence]


_WORDS = st.lists(
    st.sampled_from(["alpha", "Beta.", "gamma!", "中文。", "एक।", "3.5", "x" * 900]), min_size=1, max_size=80
)


KINDS: list[BlockKind] = ["heading", "paragraph", "table", "list", "code"]


@st.composite
def documents(draw: st.DrawFn) -> SourceText:
    parts: list[Part] = []
    path: tuple[str, ...] = ()
    for _ in range(draw(st.integers(1, 12))):
        kind: BlockKind = draw(st.sampled_from(KINDS))
        if kind == "heading":
            depth = draw(st.integers(0, len(path)))
            path = (*path[:depth], draw(st.sampled_from(["A", "B", "C"])))
            parts.append(("heading", path[-1], path))
        else:
            separator = " " if kind == "paragraph" else "\n"
            parts.append((kind, separator.join(draw(_WORDS)), path))
    return source_of(*parts)


@settings(deadline=None, max_examples=150)
@given(source=documents())
def test_passages_of_any_document_are_exact_bounded_and_lose_nothing(source: SourceText) -> None:
    passages = split_passages(source)
    assert_exact(source, passages)
    assert all(passage.tokens <= 520 for passage in passages)
    found = "\n".join([passage.text for passage in passages] + [name for p in passages for name in p.heading_path])
    assert all(block.text in found for block in source.blocks if block.kind == "heading")
