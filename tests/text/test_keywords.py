"""The built-in keyword extractor and the guess of a language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text.keywords import MAX_HIGH, MAX_LOW, extract_keywords
from app.text.languages import detect_language


@pytest.mark.parametrize(
    ("query", "high", "low"),
    [
        (
            "What were the effects of the Treaty of Versailles on the economy?",
            ("effects", "economy"),
            ("Treaty of Versailles",),
        ),
        ("How does error E-1042 relate to nginx?", ("error", "relate", "nginx"), ("E-1042",)),
        ("北京大学教授在谷歌的研究方向是什么？", ("教授", "研究", "方向"), ("北京大学", "谷歌")),
        ("who founded stanford university", ("founded stanford university",), ("founded stanford university",)),
        ("?", ("?",), ("?",)),
        ("hi", ("hi",), ("hi",)),
        ("的", ("的",), ("的",)),
        ("  \n ", (), ()),
    ],
)
def test_keywords_of_a_query(query: str, high: tuple[str, ...], low: tuple[str, ...]) -> None:
    keywords = extract_keywords(query)
    assert (keywords.high, keywords.low) == (high, low)


@given(st.text(max_size=200))
def test_neither_list_is_empty_for_a_query_that_is_not_blank(query: str) -> None:
    keywords = extract_keywords(query)
    assert bool(keywords.high) == bool(keywords.low) == bool(query.split())
    assert len(keywords.high) <= MAX_HIGH
    assert len(keywords.low) <= MAX_LOW


def test_a_question_of_600_words_gives_a_bounded_number() -> None:
    keywords = extract_keywords(" ".join(f"word{number} Name{number}" for number in range(300)))
    assert len(keywords.high) <= MAX_HIGH
    assert len(keywords.low) == MAX_LOW


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The harbour freezes in winter.", "en"),
        ("Der Hafen friert im Winter zu.", "de"),
        ("Le port gèle en hiver et les bateaux restent.", "fr"),
        ("El puerto se congela en el invierno.", "es"),
        ("Порт замерзает зимой.", "ru"),
        ("يتجمد الميناء في الشتاء", "ar"),
        ("ท่าเรือกลายเป็นน้ำแข็งในฤดูหนาว", "th"),
        ("बंदरगाह सर्दियों में जम जाता है", "hi"),
        ("港口冬天会结冰", "zh"),
        ("港は冬に凍ります", "ja"),
        ("항구는 겨울에 언다", "ko"),
        ("Что такое Tesla Electric Light?", "ru"),
        ("", "und"),
        ("12 + 3 !", "und"),
    ],
)
def test_language(text: str, language: str) -> None:
    assert detect_language(text) == language
