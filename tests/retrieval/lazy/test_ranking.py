"""The fusion of the two legs and the final score, as arithmetic."""

import pytest

from app.retrieval.lazy.parameters import FULL_COVERAGE, GRAPH_WEIGHT, LEXICAL_SHARE, SEED_DAMPING
from app.retrieval.lazy.ranking import final_scores, fuse, lift
from app.retrieval.store.hits import Hit, Ranking
from app.retrieval.store.postings import LexicalResult


def lexical(scores: dict[int, float], coverage: float = 1.0) -> LexicalResult:
    return LexicalResult(tuple(Hit(*item) for item in scores.items()), coverage=coverage)


def hits(scores: dict[int, float]) -> Ranking:
    return Ranking(tuple(Hit(*item) for item in scores.items()))


def test_each_leg_counts_relative_to_its_own_scale() -> None:
    fused = fuse(lexical({1: 12.0, 2: 6.0}), hits({3: 0.9, 1: 0.8, 4: 0.7})).fused
    words, meanings = LEXICAL_SHARE, 1 - LEXICAL_SHARE
    assert fused == pytest.approx({1: words + meanings * 0.5, 2: words * 0.5, 3: meanings, 4: 0.0})
    assert list(fused) == [1, 2, 3, 4]


def test_models_with_another_range_of_similarities_give_the_same_order() -> None:
    wide = {3: 0.9, 1: 0.5, 4: 0.1}
    narrow = {passage: 0.8 + score / 100 for passage, score in wide.items()}
    words = lexical({1: 12.0, 2: 6.0})
    assert fuse(words, hits(wide)).fused == pytest.approx(fuse(words, hits(narrow)).fused)


def test_a_question_in_another_language_is_answered_by_the_vectors() -> None:
    legs = fuse(lexical({7: 3.0}, coverage=0.02), hits({1: 0.5, 2: 0.4, 3: 0.3}))
    assert legs.lexical_share == pytest.approx(LEXICAL_SHARE * 0.02 / FULL_COVERAGE)
    assert next(iter(legs.fused)) == 1


def test_an_empty_leg_leaves_all_weight_to_the_other() -> None:
    assert list(fuse(lexical({}, coverage=0), hits({1: 0.5, 2: 0.4})).fused) == [1, 2]
    assert fuse(lexical({5: 2.0, 6: 1.0}, coverage=0.01), Ranking()).fused == {5: 1.0, 6: 0.5}
    assert fuse(lexical({}, coverage=0), Ranking()).fused == {}


def test_vectors_that_all_are_equally_near_are_all_as_good() -> None:
    assert fuse(lexical({}, coverage=0), hits({2: 0.5, 1: 0.5})).fused == {1: 1.0, 2: 1.0}


def test_ties_go_by_id() -> None:
    assert list(final_scores({9: 0.5, 3: 0.5, 5: 0.5}, {}, [])) == [9, 3, 5]


def test_the_graph_lifts_what_it_reached_and_seeds_by_a_part() -> None:
    scores = final_scores({1: 1.0, 2: 0.2}, {2: 3.0, 8: 3.0}, seeds=[1, 2])
    assert scores[8] == pytest.approx(GRAPH_WEIGHT * 0.75)
    assert scores[2] == pytest.approx(0.2 + GRAPH_WEIGHT * 0.75 * SEED_DAMPING)


def test_the_first_of_the_plain_ranking_stays_first() -> None:
    scores = final_scores({1: 0.4, 2: 0.3}, {8: 1000.0, 2: 1000.0}, seeds=[1, 2])
    assert list(scores) == [1, 8, 2]


def test_the_second_and_third_of_the_plain_ranking_stay_among_the_first_five() -> None:
    plain = {1: 0.9, 2: 0.3, 3: 0.2, 4: 0.1}
    scores = final_scores(plain, dict.fromkeys(range(10, 18), 5.0), seeds=[1, 2, 3, 4])
    assert list(scores)[:5] == [1, 10, 11, 2, 3]
    assert list(scores)[-1] == 4
    assert list(scores.values()) == sorted(scores.values(), reverse=True)


def test_lift_never_reaches_one() -> None:
    assert lift(0) == 0
    assert lift(1) == 0.5
    assert lift(1e6) < 1
