"""The yardstick: a plain walk over concepts that passages share."""

from bench.showcase import SHOWCASE_BUDGETS, ShowcaseIndex, showcase_concepts

PASSAGES = {
    1: ("Dark Water", "Dark Water was directed by Hideo Nakata."),
    2: ("Hideo Nakata", "Hideo Nakata was born in Okayama."),
    3: ("Bread", "Bread needs flour."),
}


def test_concepts_are_the_most_frequent_words_and_phrases() -> None:
    assert showcase_concepts("Hideo Nakata made films. The films of Hideo Nakata", 3) == [
        "hideo nakata",
        "hideo",
        "nakata",
    ]
    assert showcase_concepts("黑豹队的防守", 3) == []


def test_concepts_of_seeds_lead_to_other_passages() -> None:
    index = ShowcaseIndex(PASSAGES, SHOWCASE_BUDGETS["showcase"])
    assert index.search("Who made Dark Water?", [1]) == [1, 2]
    assert index.edges["born"]["okayama"] == 1


def test_a_budget_bounds_the_visits() -> None:
    budget = SHOWCASE_BUDGETS["showcase-fast"]
    index = ShowcaseIndex({n: (f"Title{n}", f"word{n} word{n + 1}") for n in range(100)}, budget)
    visited = [concept for concept, _ in index._visits({"word5": 1.0})]
    assert len(visited) == budget.visits
    assert visited[0] == "word5"
