"""The offline chat model against LightRAG's own prompts: what it answers is what LightRAG's parsers take."""

import json

import pytest
from lightrag.prompt import PROMPTS

from app.providers.answers import check_extraction, check_keywords
from app.providers.contract import ChatMessage, Purpose
from app.providers.factory import ModelFactory
from tests.providers.profiles import OFFLINE_CHAT

TEXT = "Nikola Tesla worked for Thomas Edison in New York.\nTesla was born in Croatia. Acme<|#|>Corp said <|COMPLETE|>."
MARKS = {"tuple_delimiter": "<|#|>", "completion_delimiter": "<|COMPLETE|>", "language": "English"}
LIMITS = {"max_total_records": 100, "max_entity_records": 40}


def extraction(text: str, *, json_mode: bool = False, types: str | None = None, **limits: int) -> list[ChatMessage]:
    kind = "_json" if json_mode else ""
    guidance = PROMPTS["default_entity_types_guidance"] if types is None else types
    common = {**MARKS, **LIMITS, **limits, "entity_types_guidance": guidance, "examples": "entity<|#|><name>"}
    return [
        ChatMessage("system", PROMPTS[f"entity_extraction{kind}_system_prompt"].format(**common)),
        ChatMessage(
            "user",
            PROMPTS[f"entity_extraction{kind}_user_prompt"].format(**common, heading_context_block="", input_text=text),
        ),
    ]


async def ask(factory: ModelFactory, messages: list[ChatMessage], *, json_mode: bool = False) -> str:
    reply = await factory.chat(OFFLINE_CHAT).complete(messages, purpose=Purpose.EXTRACT, json_mode=json_mode)
    return reply.text


async def test_extraction_gives_records_that_pass_the_check(factory: ModelFactory) -> None:
    answer = await ask(factory, extraction(TEXT))
    assert check_extraction(answer, "stop", json_mode=False) == answer
    rows = [line.split("<|#|>") for line in answer.splitlines()[:-1]]
    entities = {row[1]: row[2] for row in rows if row[0] == "entity"}
    assert entities["Nikola Tesla"] == "Person"
    assert entities["New York"] == "Location"
    assert {len(row) for row in rows if row[0] == "entity"} == {4}
    assert {len(row) for row in rows if row[0] == "relation"} == {5}
    assert all(all(row) for row in rows)
    assert ["relation", "Nikola Tesla", "Thomas Edison"] in [row[:3] for row in rows]
    assert answer.endswith("<|COMPLETE|>")
    assert answer.count("<|COMPLETE|>") == 1


async def test_extraction_in_json_mode(factory: ModelFactory) -> None:
    answer = await ask(factory, extraction(TEXT, json_mode=True), json_mode=True)
    graph = json.loads(check_extraction(answer, "stop", json_mode=True))
    assert "Nikola Tesla" in [entity["name"] for entity in graph["entities"]]
    assert {"source", "target", "keywords", "description"} == set(graph["relationships"][0])


async def test_same_text_gives_the_same_answer(factory: ModelFactory) -> None:
    assert await ask(factory, extraction(TEXT)) == await ask(factory, extraction(TEXT))


async def test_limits_of_the_prompt_are_kept(factory: ModelFactory) -> None:
    answer = await ask(factory, extraction(TEXT, max_entity_records=2, max_total_records=3))
    kinds = [line.split("<|#|>")[0] for line in answer.splitlines()]
    assert kinds == ["entity", "entity", "relation", "<|COMPLETE|>"]


async def test_types_of_the_workspace_are_used(factory: ModelFactory) -> None:
    answer = await ask(factory, extraction(TEXT, types="Use one of these.\n\n- person: who\n- Machine: what"))
    types = {line.split("<|#|>")[2] for line in answer.splitlines() if line.startswith("entity")}
    assert types == {"person", "Other"}


async def test_text_without_names_is_an_extraction_of_nothing(factory: ModelFactory) -> None:
    assert await ask(factory, extraction("nothing to see here, move along.")) == "<|COMPLETE|>"


@pytest.mark.parametrize("json_mode", [False, True])
async def test_gleaning_finds_nothing_more(factory: ModelFactory, json_mode: bool) -> None:
    name = f"entity_continue_extraction{'_json' if json_mode else ''}_user_prompt"
    history = [
        *extraction(TEXT),
        ChatMessage("assistant", "…"),
        ChatMessage("user", PROMPTS[name].format(**MARKS, **LIMITS)),
    ]
    answer = await ask(factory, history, json_mode=json_mode)
    assert answer == ('{"entities": [], "relationships": []}' if json_mode else "<|COMPLETE|>")


@pytest.mark.parametrize("query", ["Who was Nikola Tesla?", "的", "?", "尼古拉·特斯拉是谁"])
async def test_keywords_are_never_empty(factory: ModelFactory, query: str) -> None:
    prompt = PROMPTS["keywords_extraction"].format(query=query, examples="", language="English")
    answer = await ask(factory, [ChatMessage("user", prompt)], json_mode=True)
    found = json.loads(answer)
    assert found["high_level_keywords"]
    assert found["low_level_keywords"]
    assert check_keywords(answer, query).low == tuple(found["low_level_keywords"])


async def test_summary_joins_the_descriptions_without_repeats(factory: ModelFactory) -> None:
    listing = '{"Description":"He was an engineer."}\n{"Description":"He was an engineer. He died in 1943."}'
    prompt = PROMPTS["summarize_entity_descriptions"].format(
        description_type="Entity",
        description_name="Tesla",
        description_list=listing,
        summary_length=500,
        language="English",
    )
    assert await ask(factory, [ChatMessage("user", prompt)]) == "He was an engineer. He died in 1943."


async def test_answers_say_that_the_offline_model_writes_none(factory: ModelFactory) -> None:
    answer = await ask(factory, [ChatMessage("system", "---Context---\nfacts"), ChatMessage("user", "Who was Tesla?")])
    assert "offline" in answer
    assert factory.chat(OFFLINE_CHAT).profile.is_offline
