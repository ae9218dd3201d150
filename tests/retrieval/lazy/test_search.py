"""Questions through the whole lazy engine: what it finds, says and refuses."""

from dataclasses import replace

import pytest

from app.retrieval.contract import BASELINE_MODES, LAZY_MODES, SearchRequest, SearchResult, UnknownMode
from app.retrieval.lazy.engine import LazySearch
from tests.retrieval.corpora import Corpus

MODES = (*LAZY_MODES, *BASELINE_MODES)

FILMS = {
    "The Silver Tide": "The Silver Tide is a 1961 drama film directed by Ottokar Venlund. It was shot on Gotland.",
    "Ottokar Venlund": "Ottokar Venlund was a Swedish engineer of bridges in his youth. He died in Uppsala in 1987.",
    "Uppsala": "Uppsala lies on the river Fyris. Its cathedral is the tallest church of Scandinavia.",
    "Amber Road": "Amber Road is a 1974 film about trade. It was directed by Karin Holm.",
    "Karin Holm": "Karin Holm studied medicine. She lived in Lund for the rest of her life.",
    "Copper Moon": "Copper Moon is a film of 1958. It was directed by Erik Dahl and shot on Öland.",
    "Erik Dahl": "Erik Dahl came from Malmö. He wrote plays before the war.",
    "Directors' Guild": "The guild gives a prize to directors of drama films each year.",
    "Film places": "Places of death of famous people are listed by the film museum, by director and by film.",
    "Museum": "The museum of film shows cameras, posters and the letters of people who made drama films.",
}


async def ask(corpus: Corpus, query: str, mode: str = "lazy", **options: object) -> SearchResult:
    request = replace(SearchRequest(query, mode), **options)  # type: ignore[arg-type]
    return await LazySearch(corpus.database).search(corpus.workspace, request)


async def fill(corpus: Corpus, documents: dict[str, str]) -> None:
    for title, content in documents.items():
        await corpus.add(title, content)


def titles(result: SearchResult) -> list[str]:
    return [passage.title for passage in result.passages]


async def test_a_bridge_leads_to_the_passage_that_shares_no_word_with_the_question(corpus: Corpus) -> None:
    await fill(corpus, FILMS)
    question = "Where did the director of the drama film The Silver Tide die?"
    assert "Ottokar Venlund" not in titles(await ask(corpus, question, "baseline"))[:3]
    result = await ask(corpus, question, "lazy")
    assert titles(result)[0] == "The Silver Tide"
    assert "Ottokar Venlund" in titles(result)[:3]


async def test_an_answer_says_why_each_passage_came(corpus: Corpus) -> None:
    await fill(corpus, FILMS)
    result = await ask(corpus, "Where did the director of the drama film The Silver Tide die?", "lazy-fast")
    found = next(passage for passage in result.passages if passage.title == "Ottokar Venlund")
    reason = next(why for why in result.details["passages"] if why["passage_id"] == found.passage_id)
    first = result.passages[0].passage_id
    assert reason["bridges"][0]["concept"] == "Ottokar Venlund"
    assert first in reason["bridges"][0]["from_passages"]
    assert "concepts" in {source.leg for source in found.sources}
    assert {"bm25", "vectors"} <= {source.leg for source in result.passages[0].sources}
    assert result.details["llm_index_calls"] == 0
    assert "Silver Tide" in result.details["question_concepts"]
    assert "Ottokar Venlund" in [visit["concept"] for visit in result.details["visited_concepts"]]
    assert result.details["budgets"]["seed_k"] == {"limit": 4, "used": 4}
    assert result.details["index"]["passages"] == len(FILMS)
    assert reason["path"] == [{"passage_id": first}, {"concept": "Ottokar Venlund"}, {"passage_id": found.passage_id}]
    assert result.details["relevance_tests"] >= len(result.details["visited_concepts"])
    assert set(result.stage_ms) == {"embedding", "vectors", "terms", "graph", "passages"}


@pytest.mark.parametrize("mode", MODES)
async def test_each_tenant_gets_its_own_marker_only(corpus: Corpus, other_corpus: Corpus, mode: str) -> None:
    """Case C1."""
    await fill(corpus, FILMS | {"Secret": "The marker ZQX-ALPHA-17 belongs to the film The Silver Tide."})
    await fill(other_corpus, FILMS | {"Secret": "The marker ZQX-BETA-42 belongs to the film The Silver Tide."})
    for question in ("Which marker ZQX belongs to The Silver Tide?", "ZQX-BETA-42", "ZQX-ALPHA-17"):
        mine = await ask(corpus, question, mode, top_k=50)
        theirs = await ask(other_corpus, question, mode, top_k=50)
        assert "BETA" not in str(mine).replace(question, "")
        assert "ALPHA" not in str(theirs).replace(question, "")
        assert any("ALPHA" in passage.text for passage in mine.passages)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["?", "hi", "的", "word " * 600, "where is the film and who are they " * 75])
async def test_a_question_of_nearly_nothing_or_of_far_too_much_is_answered(
    corpus: Corpus, mode: str, query: str
) -> None:
    """Case C34."""
    await fill(corpus, FILMS)
    assert len((await ask(corpus, query, mode, top_k=10)).passages) == 10


@pytest.mark.parametrize("mode", MODES)
async def test_an_empty_workspace_says_that_nothing_matches(corpus: Corpus, mode: str) -> None:
    result = await ask(corpus, "Where did Ottokar Venlund die?", mode)
    assert result.passages == ()
    assert result.notes


async def test_words_that_are_no_name_find_their_passage(corpus: Corpus) -> None:
    """Case C33, for the modes that know no entities."""
    await fill(corpus, FILMS)
    await corpus.add("Note", "the boiler must be drained before the first frost, or its pipes will burst")
    for mode in MODES:
        assert titles(await ask(corpus, "when should i drain the boiler", mode))[0] == "Note"


LANGUAGES = {
    "zh": ("量子计算研究所位于合肥。所长潘建明主持光子计算机项目。", "合肥的量子计算研究所主持什么项目？"),
    "ru": ("Институт океанологии находится во Владивостоке. Его директор Анна Морозова.", "Кто директор Института океанологии?"),
    "ar": ("يقع معهد البحار في مدينة الإسكندرية. مديرته هي ليلى المنصوري.", "من هي مديرة معهد البحار في الإسكندرية؟"),
    "th": ("สถาบันสมุทรศาสตร์ตั้งอยู่ที่จังหวัดภูเก็ต ผู้อำนวยการคือสมชาย ใจดี", "สถาบันสมุทรศาสตร์ตั้งอยู่ที่จังหวัดใด"),
    "hi": ("समुद्र विज्ञान संस्थान मुंबई में स्थित है। इसकी निदेशक मीरा शर्मा हैं।", "समुद्र विज्ञान संस्थान की निदेशक कौन हैं?"),
}  # fmt: skip
OTHERS = {
    "zh": ("长江是亚洲最长的河流，流经十一个省份。", "大熊猫生活在四川的竹林里。"),
    "ru": ("Волга впадает в Каспийское море.", "В Сибири растут густые хвойные леса."),
    "ar": ("ينبع نهر النيل من بحيرة فيكتوريا.", "تنمو أشجار النخيل في الواحات."),
    "th": ("แม่น้ำเจ้าพระยาไหลผ่านกรุงเทพมหานคร", "ช้างเป็นสัตว์ประจำชาติของไทย"),
    "hi": ("गंगा नदी हिमालय से निकलती है।", "मोर भारत का राष्ट्रीय पक्षी है।"),
}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_documents_in_any_script_are_found_by_their_concepts(corpus: Corpus, language: str) -> None:
    """Case C38."""
    content, question = LANGUAGES[language]
    for other, texts in OTHERS.items():
        for number, found in enumerate(texts):
            await corpus.add(f"{other} {number}", found)
    await corpus.add("wanted", content)
    for mode in MODES:
        result = await ask(corpus, question, mode)
        assert titles(result)[0] == "wanted"
        assert "bm25" in {source.leg for source in result.passages[0].sources}
    assert (await ask(corpus, question, "lazy")).details["question_concepts"]


async def test_only_trusted_versions_feed_seeds_and_bridges(corpus: Corpus) -> None:
    await fill(corpus, {title: FILMS[title] for title in ("The Silver Tide", "Amber Road")})
    await corpus.add("Ottokar Venlund", FILMS["Ottokar Venlund"], state="partial")
    question = "Where did the director of The Silver Tide die?"
    for mode in MODES:
        assert "Ottokar Venlund" not in titles(await ask(corpus, question, mode))
        with_partial = await ask(corpus, question, mode, include_partial=True)
        assert [p.title for p in with_partial.passages if p.is_partial] == ["Ottokar Venlund"]


async def test_the_limit_of_passages_holds(corpus: Corpus) -> None:
    await fill(corpus, FILMS)
    few = (await ask(corpus, "drama film", "lazy", top_k=3)).passages
    assert len(few) == 3
    assert few == (await ask(corpus, "drama film", "lazy")).passages[:3]


async def test_the_same_question_gets_the_same_answer(corpus: Corpus) -> None:
    await fill(corpus, FILMS)
    answers = [await ask(corpus, "Which films were shot on an island?", "lazy-wide") for _ in range(3)]
    assert answers[0].passages == answers[1].passages == answers[2].passages
    assert answers[0].details == answers[1].details


async def test_a_mode_of_another_engine_is_refused(corpus: Corpus) -> None:
    with pytest.raises(UnknownMode):
        await ask(corpus, "x", "mix")
