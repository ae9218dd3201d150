"""Which themes a question is about: pure functions."""

import math
from uuid import UUID

import pytest

from app.retrieval.themes.ranking import (
    LegScores,
    TermUse,
    chosen,
    cover,
    near,
    ranked,
    route_themes,
    tf_idf,
    words_weight,
)

A, B, C, D = (UUID(int=number) for number in range(1, 5))
ONE = TermUse(1, 1)
EQUAL = dict.fromkeys((A, B, C, D), 0.5)


def test_coverage_is_the_part_of_the_term_weight() -> None:
    uses = {A: {"seal": TermUse(9, 4), "press": ONE}, B: {"press": ONE}, C: {"added": ONE}}
    assert cover(uses, {"seal": 3.0, "press": 1.0, "unseen": 4.0}) == {A: 0.5, B: 0.125}
    assert cover(uses, {}) == {}


def test_tf_idf_takes_a_theme_as_one_text() -> None:
    uses = {A: {"seal": TermUse(9, 4)}, B: {"seal": ONE, "pump": ONE}}
    found = tf_idf(uses, {"seal": 1.0, "pump": 0.5}, {A: 16, B: 1}, 4)
    assert found[A] == pytest.approx((1 + math.log(9)) * math.log1p(4 / 2) / 4)
    assert found[B] == pytest.approx(math.log1p(2) + 0.5 * math.log1p(4))


def test_a_theme_is_as_near_as_its_nearest_passages() -> None:
    found = near([(A, 0.9), (B, 0.8), (B, 0.8), (B, 0.7), (B, 0.2), (C, 0.1)])
    assert found == pytest.approx({A: (0.9 + 0.1 + 0.1) / 3, B: (0.8 + 0.8 + 0.7) / 3, C: 0.1})
    assert near([]) == {}


def test_equal_scores_share_a_rank() -> None:
    assert ranked({A: 0.5, B: 0.7, C: 0.5, D: 0.1}) == {B: 1, A: 2, C: 2, D: 4}


def test_first_in_every_leg_is_a_relevance_of_one() -> None:
    legs = LegScores({A: 1.0, B: 0.5}, {A: 0.9, B: 0.8, C: 0.7}, {A: 4.0, B: 1.0}, words=1.0)
    first, second, third = route_themes(legs, EQUAL, coverage_weight=0.6)
    assert first.theme_id == A
    assert first.relevance == pytest.approx(1.0)
    assert second.relevance == pytest.approx(61 / 62)
    assert third.relevance == pytest.approx(61 / 63 / 3)
    assert [source.leg for source in first.sources] == ["coverage", "vectors", "tf_idf"]
    assert first.score == pytest.approx(0.6 * 1.0 + 0.4 * 0.5)


def test_words_do_not_lead_a_question_of_another_language() -> None:
    """One stray number in common: the vectors decide, and the best theme has all the relevance that there can be."""
    stray = {B: 0.15}
    weight = words_weight(stray)
    assert weight == 0
    assert [words_weight({B: part}) for part in (0.3, 0.4, 0.9)] == pytest.approx([0.5, 1.0, 1.0])
    legs = LegScores(stray, {A: 0.9, C: 0.8, B: 0.1}, {B: 2.0}, words=weight)
    routed = route_themes(legs, EQUAL, coverage_weight=0.6)
    assert routed[0].theme_id == A
    assert routed[0].coverage > next(item for item in routed if item.theme_id == B).coverage
    none = LegScores({}, {A: 0.9, B: 0.1}, {}, words=0.0)
    assert route_themes(none, EQUAL, coverage_weight=0.6)[0].relevance == pytest.approx(1.0)


def test_legs_that_were_not_searched_take_nothing_from_the_others() -> None:
    only_vectors = LegScores(None, {A: 0.9}, None, words=0.0)
    only_words = LegScores({B: 0.3}, {}, {B: 1.0}, words=0.75)
    assert route_themes(only_vectors, EQUAL, coverage_weight=0.6)[0].relevance == pytest.approx(1.0)
    assert route_themes(only_words, EQUAL, coverage_weight=0.6)[0].relevance == pytest.approx(1.0)
    assert route_themes(LegScores({}, {}, {}, words=0.0), EQUAL, coverage_weight=0.6) == []


def test_themes_that_may_not_be_told_are_not_ranked() -> None:
    legs = LegScores({B: 1.0, A: 0.5}, {B: 0.9, A: 0.5}, {B: 2.0, A: 1.0}, words=1.0)
    [only] = route_themes(legs, {A: 0.5}, coverage_weight=0.6)
    assert only.theme_id == A
    assert only.relevance == pytest.approx(1.0)


def test_the_most_relevant_are_told_in_the_order_of_their_query_rank() -> None:
    legs = LegScores({A: 0.2, B: 0.2, C: 0.1}, {A: 0.9, B: 0.8, C: 0.7}, {A: 3.0, B: 2.0, C: 1.0}, words=1.0)
    routed = route_themes(legs, {A: 0.1, B: 0.9, C: 1.0}, coverage_weight=0.5)
    assert [item.theme_id for item in routed] == [A, B, C]
    assert [item.theme_id for item in chosen(routed, 2, None)] == [B, A]
    assert [item.theme_id for item in chosen(routed, 5, 0.98)] == [B, A]
    assert chosen(routed, 5, None)[0].theme_id == B
