"""What the question names is lifted, and what the first seed leaves unanswered is looked for elsewhere."""

import pytest

from app.retrieval.contract import SearchResult
from app.retrieval.lazy.naming import lift_named, named_passages, naming_keys
from app.retrieval.lazy.parameters import NAMED_PASSAGES, NAMED_SHARE, REST_WEIGHT
from app.retrieval.lazy.traversal import Question, Walk, weigh_rest
from app.text.concepts.extraction import concept_key, query_concepts
from tests.retrieval.corpora import Corpus
from tests.retrieval.lazy.test_search import ask


def test_names_and_phrases_of_a_question_may_be_titles_and_single_words_may_not() -> None:
    keys = naming_keys(query_concepts("Who wrote silver tide for Karin Holm in 1961?"))
    assert {concept_key("silver tide"), concept_key("karin holm"), concept_key("1961")} <= set(keys)
    assert concept_key("wrote") not in keys


def test_a_name_of_many_passages_names_none() -> None:
    few = [(passage_id, 0) for passage_id in range(NAMED_PASSAGES)]
    assert named_passages({1: few, 2: [(77, 0)]}) == {*range(NAMED_PASSAGES), 77}
    assert named_passages({1: [*few, (99, 0)]}) == set()


def test_named_passages_are_lifted_and_join_the_ranking() -> None:
    lifted = lift_named({1: 0.9, 2: 0.6}, {2, 3})
    assert lifted == pytest.approx({2: 0.6 + NAMED_SHARE, 1: 0.9, 3: NAMED_SHARE})
    assert list(lifted) == [2, 1, 3]


def test_mass_counts_more_in_a_passage_that_holds_what_the_first_seed_does_not() -> None:
    question = Question({"silver": 2.0, "director": 1.0, "born": 1.0}, frozenset())
    walk = Walk()
    walk.masses.update({1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0})
    held = {1: {"silver", "director"}, 2: {"born"}, 3: {"silver"}}
    weigh_rest(walk, question, 1, held)
    assert walk.masses[2] == 1 + REST_WEIGHT, "all of the rest"
    assert walk.masses[3] == 1.0, "what the first seed has as well"
    assert walk.masses[4] == 1.0, "nothing"
    assert walk.masses[1] == 1 + REST_WEIGHT * 0.75, "the first is measured against the whole question"


def legs(result: SearchResult, title: str) -> set[str]:
    return {source.leg for passage in result.passages if passage.title == title for source in passage.sources}


async def test_the_passage_with_the_name_as_its_title_comes_before_those_that_repeat_its_words(corpus: Corpus) -> None:
    await corpus.add("Silver Tide", "A play about fishermen. It ran for two years.")
    for number in range(4):
        await corpus.add(f"Note {number}", "The silver coins came with the tide; silver and tide rhyme with little.")
    result = await ask(corpus, "What is silver tide about?")
    assert result.passages[0].title == "Silver Tide"
    assert "names" in legs(result, "Silver Tide")
    assert "names" not in legs(result, "Note 0")
    assert "names" not in legs(await ask(corpus, "What is silver tide about?", "baseline"), "Silver Tide")


async def test_untitled_text_is_named_by_what_its_paragraphs_begin_with(corpus: Corpus) -> None:
    await corpus.add("", "Ottokar Venlund was an engineer.\n\nThe Amber Road led to the south.")
    await corpus.add("", "Somebody met Ottokar Venlund on the way.")
    result = await ask(corpus, "Who was Ottokar Venlund?")
    named = [p for p in result.passages if "names" in {source.leg for source in p.sources}]
    assert [p.text.split()[0] for p in named] == ["Ottokar"]


async def test_what_is_not_trusted_is_not_named(corpus: Corpus) -> None:
    await corpus.add("Silver Tide", "A play about fishermen.", state="partial")
    await corpus.add("Other", "A silver coin.")
    result = await ask(corpus, "Who wrote Silver Tide?")
    assert [passage.title for passage in result.passages] == ["Other"]
