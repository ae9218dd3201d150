"""Concepts and search terms in every script: what is found, under which key, and that it is always the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text.concepts.extraction import (
    Concept,
    ConceptKind,
    concept_key,
    extract_concepts,
    query_concepts,
    title_text,
)
from app.text.concepts.terms import MAX_TERM_CHARS, terms
from app.text.concepts.words import Lexeme, is_identifier, normalise, script_of, sentences, tokens


def found(text: str, kind: ConceptKind | None = None) -> list[str]:
    return [concept.surface for concept in extract_concepts([text]) if kind in (None, concept.kind)]


def one(concepts: list[Concept], normal: str) -> Concept:
    return next(concept for concept in concepts if concept.normal == normal)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "They met the University of California in June.",
            ["University of California", "University", "California", "June"],
        ),
        ("The book by J. K. Rowling sold well.", ["J. K. Rowling"]),
        ("We use iPhone, C++, node_modules, COVID-19 tests.", ["iPhone", "C++", "node_modules", "COVID-19"]),
        ("Yesterday was warm.", []),  # a capital from the start of the sentence only
        ("In Paris it rained.", ["Paris"]),
        ("Los Angeles is big and AT&T is there.", ["Los Angeles", "AT&T"]),
        ("Apple's Tim Cook spoke.", ["Tim Cook"]),
        ("l'Université de Paris et l'État", ["Université de Paris", "Université", "Paris", "État"]),
        ("Die Vereinten Nationen tagten in San Francisco.", ["Vereinten Nationen", "San Francisco"]),
        ("Он был в Москве с Иваном Петровым.", ["Москве", "Иваном Петровым"]),
        ("Ζει στην Αθήνα και στη Θεσσαλονίκη", ["Αθήνα", "Θεσσαλονίκη"]),
    ],
)
def test_names_and_identifiers(text: str, names: list[str]) -> None:
    assert found(text, ConceptKind.NAME) == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("أسس الملك عبد العزيز المملكة العربية", ["أسس", "ملك", "عبد", "عزيز", "مملكة", "عربية"]),
        ("北京大学教授在上海", ["北京大学", "教授", "上海"]),
        ("スティーブ・ジョブズはアップルを設立した", ["スティーブ", "ジョブズ", "アップル", "設立"]),
        ("भारत की राजधानी नई दिल्ली में है", ["भारत", "राजधानी", "दिल्ली"]),
        ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", ["กรุงเทพมหานคร", "เมืองหลวง", "ประเทศ", "ไทย"]),
        ("서울은 대한민국의 수도", ["서울", "대한민국", "수도"]),
    ],
)
def test_words_of_scripts_without_capitals(text: str, words: list[str]) -> None:
    concepts = extract_concepts([text])
    assert [concept.surface for concept in concepts] == words
    assert all(concept.kind is ConceptKind.WORD and concept.is_caseless for concept in concepts)


def test_numbers_need_three_digits_and_lower_case_words_four_letters() -> None:
    text = "it cost 12 or 1,200 euro in 1999 with the big engine"
    assert found(text, ConceptKind.NUMBER) == ["1,200", "1999"]
    assert found(text, ConceptKind.WORD) == ["cost", "euro", "engine"]


def test_a_concept_knows_its_sentences_and_counts() -> None:
    concepts = extract_concepts(
        ["We like Acme Corp.", "Nothing here.", "So acme corp, says ACME Corp twice: Acme Corp."]
    )
    acme = one(concepts, "acme corp")
    assert acme.surface == "Acme Corp"
    assert acme.sentences == (0, 2)
    assert acme.tf == 3
    assert acme.kind is ConceptKind.NAME


def test_title_is_a_concept_and_marks_those_inside_it() -> None:
    concepts = extract_concepts(["Its moons are small, unlike Jupiter."], "Moons of Mars (planet)")
    title = one(concepts, "moons of mars")
    assert (title.is_title, title.in_title, title.sentences, title.tf) == (True, True, (), 0)
    assert one(concepts, "mars").in_title
    assert not one(concepts, "mars").is_title
    assert not one(concepts, "jupiter").in_title
    assert title_text("大元通制（法典）") == "大元通制"


def test_spellings_share_a_key() -> None:
    pairs = [
        ("ACME’s", "acme"),
        ("Café", "cafe"),
        ("Ｆｕｌｌ", "full"),
        ("Ёлка", "елка"),
        ("القَاهِرَة", "القاهره"),
        ("إسلام", "اسلام"),
    ]
    assert [normalise(left) for left, _ in pairs] == [right for _, right in pairs]
    assert normalise("й") == "й"
    assert normalise("٢٠٢٤") == "2024"
    assert normalise("1,234,567") == "1234567"


def test_keys_fit_a_bigint_and_never_change() -> None:
    # Stored in every index: a change of these would orphan them.
    assert concept_key("acme corp") == -6_927_111_601_853_705_600
    assert all(-(2**63) <= concept_key(str(number)) < 2**63 for number in range(100))


def test_query_finds_names_that_people_write_in_lower_case() -> None:
    concepts = query_concepts("who founded stanford university in new york")
    normals = {concept.normal for concept in concepts}
    assert {"stanford university", "new york", "founded"} <= normals
    assert one(concepts, "new york").kind is ConceptKind.PHRASE
    assert one(concepts, "new york").key == one(extract_concepts(["We love New York."]), "new york").key
    assert "in new york" not in normals


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cats and the COVID-19 tests", ["cats", "covid-19", "covid", "19", "tests"]),
        ("北京大学", ["北京", "京大", "大学", "北京大学"]),
        ("山", ["山"]),
        ("للجامعة الكبرى", ["جامع", "كبري"]),
        ("книги о Москве", ["книг", "москв"]),
        ("किताबों में", ["किताब"]),
        ("Straße in Köln", ["strasse", "koln"]),
        ("ประเทศไทย", ["ประเทศ", "ไทย"]),
        ("the of and", []),
        ("", []),
    ],
)
def test_search_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_inflected_words_share_a_term() -> None:
    assert terms("университета") == terms("университетом") == terms("университет")
    assert terms("дом") == ["дом"]


def test_question_and_passage_share_terms_over_spelling() -> None:
    assert set(terms("CAFÉS in Zürich’s 1,200 houses")) & set(terms("cafés zurich 1200")) == {"cafes", "zurich", "1200"}


@given(st.text(max_size=300))
def test_any_text_gives_bounded_concepts_and_terms(text: str) -> None:
    for concept in extract_concepts([text], text):
        assert concept.normal
        assert concept.key == concept_key(concept.normal)
        assert concept.sentences in ((), (0,))
    assert all(0 < len(term) <= MAX_TERM_CHARS for term in terms(text))
    assert all(text[token.start : token.end] == token.text for token in tokens(text))
    query_concepts(text)


@given(st.text(max_size=300))
def test_the_tokens_of_the_sentences_are_those_of_the_text(text: str) -> None:
    """Or else terms and concepts could not be found in one reading. A run without spaces may be cut at a sentence's end."""
    apart = [token.text for sentence in sentences(text) for token in sentence.tokens]
    assert "".join(apart) == "".join(token.text for token in tokens(text))


@given(st.lists(st.text(max_size=60), max_size=5))
def test_order_of_other_sentences_does_not_change_keys(sentences: list[str]) -> None:
    forward = {concept.key: concept.tf for concept in extract_concepts(sentences)}
    backward = {concept.key: concept.tf for concept in extract_concepts(sentences[::-1])}
    assert forward == backward


def test_very_long_runs_are_handled_in_linear_time() -> None:
    for unit in ("a", "A ", "中", "ก", "a.", "1,234", "的", "X-"):
        text = unit * 20_000
        extract_concepts([text])
        terms(text)


@given(st.text("abzABZ", min_size=1, max_size=6))
def test_plain_words_take_a_shorter_way_to_the_same_end(word: str) -> None:
    found = Lexeme(word)
    assert (found.normal, found.script, found.is_identifier) == (normalise(word), script_of(word), is_identifier(word))
