"""Bad answers of models, kept as files: each is either cleaned into a usable one or told apart by its error."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.errors import AppError
from app.providers.answers import check_extraction, check_gleaning, check_keywords, check_text
from app.providers.contract import ModelCutOff, ModelNonsense, ModelRefused

FIXTURES = Path(__file__).parent / "fixtures"
CASES: list[dict[str, Any]] = json.loads((FIXTURES / "cases.json").read_text())
KEYWORDS: dict[str, dict[str, list[str] | None]] = json.loads((FIXTURES / "keywords.json").read_text())


def counts(answer: str, json_mode: bool) -> list[int]:
    """Entities and relations that LightRAG's parsers would find: exactly 4 and 5 fields, no empty one."""
    if json_mode:
        graph = json.loads(answer)
        return [len(graph["entities"]), len(graph["relationships"])]
    rows = [line.split("<|#|>") for line in answer.splitlines()]
    return [
        sum(row[0] == "entity" and len(row) == 4 and all(row) for row in rows),
        sum(row[0] == "relation" and len(row) == 5 and all(row) for row in rows),
    ]


@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
def test_extraction_answer(case: dict[str, Any]) -> None:
    text = (FIXTURES / case["file"]).read_text()
    if "error" in case:
        with pytest.raises(AppError) as raised:
            check_extraction(text, case["finish_reason"], case["json_mode"])
        assert raised.value.reason == case["error"]
        return
    cleaned = check_extraction(text, case["finish_reason"], case["json_mode"])
    assert counts(cleaned, case["json_mode"]) == case["usable"]
    assert check_extraction(cleaned, "stop", case["json_mode"]) == cleaned


def test_every_fixture_has_a_case() -> None:
    named = {case["file"] for case in CASES} | set(KEYWORDS)
    assert named == {path.name for path in FIXTURES.glob("*.txt")}


@pytest.mark.parametrize("file", KEYWORDS)
def test_keywords_answer(file: str) -> None:
    keywords = check_keywords((FIXTURES / file).read_text(), "Which elements did Marie Curie discover?")
    expected = KEYWORDS[file]
    assert keywords.high
    assert keywords.low
    if expected["high"]:
        assert list(keywords.high) == expected["high"]
        assert list(keywords.low) == expected["low"]
    else:
        assert keywords.low == ("Marie Curie",)


def test_summary_is_cleaned_and_checked() -> None:
    assert check_text("<think>short</think>\nA summary.", "stop") == "A summary."
    with pytest.raises(ModelCutOff):
        check_text("A summ", "length")
    with pytest.raises(ModelRefused):
        check_text("I'm sorry, I can't do that.", "stop")
    with pytest.raises(ModelNonsense):
        check_text(" ", "stop")


def test_gleaning_that_finds_nothing_says_so_in_words() -> None:
    prose = "No entities or relationships were missed in the last task."
    assert check_gleaning(prose, "stop", json_mode=False) == "<|COMPLETE|>"
    assert json.loads(check_gleaning(prose, "stop", json_mode=True)) == {"entities": [], "relationships": []}
    with pytest.raises(ModelCutOff):
        check_gleaning(prose, "length", json_mode=False)


def test_sorry_inside_a_record_is_no_refusal() -> None:
    record = "entity<|#|>Sorry Records<|#|>organization<|#|>I'm sorry is its first album.\n<|COMPLETE|>"
    assert check_extraction(record, "stop", json_mode=False) == record
