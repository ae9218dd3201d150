"""Harder sets keep the answers of the sets they are derived from."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.datasets import (
    EvaluationSet,
    as_long_documents,
    cross_language,
    in_lower_case,
    read_sets,
    variants,
    without_titles,
)

DATA = Path("tests/data/retrieval")


@pytest.fixture(scope="module")
def wiki() -> EvaluationSet:
    (found,) = read_sets(DATA, ["2wiki_context"], 5)
    return found


def passages(evaluation: EvaluationSet) -> dict[str, str]:
    return {p.id: d.text[p.start : p.end] for d in evaluation.documents for p in d.passages}


def test_all_sets_of_the_folder_are_read_with_gold_passages_that_exist() -> None:
    sets = list(read_sets(DATA, [], None))
    assert [found.name for found in sets] == ["2wiki_context", "xquad_ru", "xquad_zh"]
    assert sum(len(found.questions) for found in sets) == 60
    for found in sets:
        assert all(question.gold <= set(passages(found)) for question in found.questions)
    assert [found.is_multi_hop for found in sets] == [True, False, False]


def test_questions_are_limited(wiki: EvaluationSet) -> None:
    assert len(wiki.questions) == 5


def test_only_multi_hop_sets_are_varied(wiki: EvaluationSet) -> None:
    (russian,) = read_sets(DATA, ["xquad_ru"], 5)
    assert list(variants(russian)) == []
    assert [found.variant for found in variants(wiki)] == ["no titles", "lower case", "long documents"]


def test_without_titles_only_the_titles_go(wiki: EvaluationSet) -> None:
    found = without_titles(wiki)
    assert {document.title for document in found.documents} == {""}
    assert passages(found) == passages(wiki)


def test_lower_case_moves_no_passage(wiki: EvaluationSet) -> None:
    found = in_lower_case(wiki)
    assert [len(document.text) for document in found.documents] == [len(document.text) for document in wiki.documents]
    assert not any(char.isupper() for document in found.documents for char in document.title + document.text)


def test_long_documents_hold_every_passage_unchanged(wiki: EvaluationSet) -> None:
    found = as_long_documents(wiki)
    assert passages(found) == passages(wiki)
    assert all(len(document.passages) <= 30 for document in found.documents)
    assert as_long_documents(wiki) == found


def test_questions_of_one_language_are_asked_of_a_translated_corpus_with_the_same_passages() -> None:
    (chinese,) = read_sets(DATA, ["xquad_zh"], 3)
    english = replace(chinese, name="xquad_en", questions=chinese.questions[:1])
    (found,) = cross_language([english, chinese])
    assert found.label == "xquad_zh, questions of xquad_en"
    assert found.documents == chinese.documents
    assert found.questions == english.questions
    assert list(cross_language([chinese])) == []
    assert list(cross_language([replace(english, documents=english.documents[1:]), chinese])) == []
