"""Kinds of questions by their form, in several languages; and questions without any form."""

import pytest

from app.text.routing.features import QuestionKind, rank_kinds, read_features

KINDS = {
    "fact": ["Who makes the seals of press 4?", "Wann wurde die Pumpe P-200 gewartet?", "¿Cuándo abrió la fábrica?", "压力机四号的密封件多久更换一次？"],
    "relation": ["How is Marta Oliveira connected to Kestrel Polymers?", "В каких отношениях завод и порт?", "ما العلاقة بين أحمد وشركة النيل؟"],
    "multi_hop": [
        "In which city is the company that makes the seals of the Tideline Sensor?",
        "В каком городе родился инженер, который спроектировал мост?",
        "Dans quelle ville est né le fondateur de l'entreprise qui fabrique les pompes ?",
    ],
    "comparison": ["Which is older, the Tideline or the Orca?", "Worin unterscheiden sich Orca und Tideline?", "这两座桥有什么区别？"],
    "corpus_wide": ["What are the main themes of the documents?", "Fasse die Unterlagen zusammen.", "De quoi parlent ces documents ?", "总结这些文件的主要内容"],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "query"), [(kind, query) for kind, queries in KINDS.items() for query in queries])
def test_a_question_is_told_by_its_form(kind: str, query: str) -> None:
    assert rank_kinds(read_features(query))[0][0] == kind


@pytest.mark.parametrize(
    "query",
    [
        "What is in these documents?", "Which areas do the files deal with?", "Give me the gist of this workspace.",
        "Was steht in den Dokumenten?", "Que contiennent ces documents ?", "¿Qué contienen estos documentos?",
        "Какие вопросы рассматриваются в текстах?", "ما محتوى هذه الوثائق؟", "文档涉及哪些领域？", "这里有哪些内容？",
    ],
)  # fmt: skip
def test_a_question_of_nothing_but_texts_is_about_all_of_them(query: str) -> None:
    features = read_features(query)
    assert (features.aimless, rank_kinds(features)[0][0]) == (1, QuestionKind.CORPUS_WIDE)


@pytest.mark.parametrize(
    "query",
    ["What does the document say about seals?", "Who wrote this report?", "谁写了这份报告？", "Wann wurde der Bericht geschrieben?", "Where?"],
)  # fmt: skip
def test_a_question_about_one_thing_is_not(query: str) -> None:
    features = read_features(query)
    assert (features.aimless, rank_kinds(features)[0][0]) == (0, QuestionKind.FACT)


@pytest.mark.parametrize("query", ["?", "hi", "的", "🙂", "", "seal " * 600, "x" * 10_000, "of .. than " * 300])
def test_what_has_no_form_is_taken_for_something(query: str) -> None:
    assert len(rank_kinds(read_features(query))) == len(QuestionKind)


def test_accents_may_be_left_out() -> None:
    with_accents, without = read_features("Résume les thèmes"), read_features("Resume les themes")
    assert with_accents.surveys == without.surveys > 0
