"""The labelled questions are what they say, and the router takes most of those that were held out for what they are."""

import json
from collections import Counter

from app.text.routing.features import QuestionKind, rank_kinds, read_features
from bench.routing import DATA, FIT_GOAL, read_questions

QUESTIONS = read_questions()
DOCUMENTS = [json.loads(line) for line in (DATA / "documents.jsonl").read_text(encoding="utf-8").splitlines()]


def test_every_language_has_eight_questions_of_each_kind() -> None:
    assert set(Counter((item.language, item.kind) for item in QUESTIONS).values()) == {8}
    assert len({item.language for item in QUESTIONS}) == len(QuestionKind) == 5
    assert len({item.text for item in QUESTIONS}) == len(QUESTIONS) == 200
    assert Counter(item.split for item in QUESTIONS) == {"tune": 100, "held_out": 100}


def test_gold_is_there_in_the_question_s_own_language() -> None:
    languages = {row["id"]: row["language"] for row in DOCUMENTS}
    for item in QUESTIONS:
        assert bool(item.gold) == (item.kind is not QuestionKind.CORPUS_WIDE), item.text
        assert {languages[label] for label in item.gold} <= {item.language}, item.text


def test_most_questions_that_were_held_out_are_told_by_their_form() -> None:
    held_out = [item for item in QUESTIONS if item.split == "held_out"]
    told = [rank_kinds(read_features(item.text))[0][0] == item.kind for item in held_out]
    assert sum(told) / len(told) >= FIT_GOAL
