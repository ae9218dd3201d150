"""The figures of the evaluation, and what it judges as not good enough."""

from dataclasses import replace

import pytest

from bench.datasets import EvaluationSet, Question
from bench.evaluation import ModeResult, SetResult
from bench.judge import Judgement, Marks
from bench.measures import MEASURES, difference, measure
from bench.report import render, verdicts

GOLD = frozenset({"a", "b"})


def result(baseline: float, lazy: float, *, gold: frozenset[str]) -> SetResult:
    def rows(value: float) -> ModeResult:
        return ModeResult([[value] * len(MEASURES)] * 4, 9.0, 2.0)

    evaluation = EvaluationSet("set", (), (Question("?", gold),) * 4)
    return SetResult(evaluation, 7, {"baseline": rows(baseline), "lazy-balanced": rows(lazy)}, {"mix": "it is off"})


def test_figures_of_a_ranking() -> None:
    found = dict(zip(MEASURES, measure(["x", "a", "y", "z", "v", "b"], GOLD), strict=True))
    assert found == {"R@2": 0.5, "R@5": 0.5, "R@10": 1.0, "all@5": 0.0, "all@8": 1.0, "MRR@10": 0.5}
    assert measure([], GOLD) == [0.0] * len(MEASURES)


def test_a_difference_comes_with_its_interval() -> None:
    assert difference([1.0] * 50, [0.0] * 50) == (1.0, 1.0, 1.0)
    mean, low, high = difference([1.0, 0.0] * 50, [0.0, 0.0] * 50)
    assert mean == pytest.approx(0.5)
    assert 0.35 < low < mean < high < 0.65


@pytest.mark.parametrize(
    ("baseline", "lazy", "gold", "is_good"),
    [
        (0.5, 0.6, GOLD, True),
        (0.5, 0.5, GOLD, False),
        (0.9, 0.895, frozenset({"a"}), True),
        (0.9, 0.88, frozenset({"a"}), False),
    ],
)
def test_more_hops_have_to_gain_and_one_hop_may_hardly_lose(
    baseline: float, lazy: float, gold: frozenset[str], is_good: bool
) -> None:
    assert (verdicts([result(baseline, lazy, gold=gold)]) == []) is is_good


def test_what_was_not_measured_is_not_a_zero() -> None:
    page = render([result(0.5, 0.6, gold=GOLD)], ["baseline", "mix"], embedding="e", command="c")
    assert "| set | mix | n/a | n/a | n/a | n/a | n/a | n/a | n/a | n/a |" in page
    assert "it is off" in page
    assert "| set | baseline | 50.0 [50, 50] |" in page
    assert "| set | 7 | 4 | 50.0 | n/a | +10.0 [10.0, 10.0] | n/a |" in page


def test_means_stand_below_the_sets_and_miss_where_a_set_misses() -> None:
    one, other = result(0.5, 0.6, gold=GOLD), result(0.7, 0.9, gold=GOLD)
    page = render([one, other], ["baseline", "lazy-balanced"], embedding="e", command="c")
    assert "| **mean, multi-hop** | | | 60.0 | 75.0 | +15.0 | |" in page
    lacking = replace(other, modes={"baseline": other.modes["baseline"]})
    page = render([one, lacking], ["baseline", "lazy-balanced"], embedding="e", command="c")
    assert "| **mean, multi-hop** | | | 60.0 | n/a | n/a | |" in page


def test_what_a_model_judges_comes_with_its_coverage() -> None:
    judged = Judgement([Marks(1.0, 0.5), Marks(0.5, 0.5)], asked=4)
    found = result(0.5, 0.6, gold=GOLD)
    modes = {**found.modes, "baseline": replace(found.modes["baseline"], judgement=judged)}
    page = render([replace(found, modes=modes)], ["baseline", "mix"], embedding="e", command="c", judge="big")
    assert "As `big` judges" in page
    assert "| set | baseline | 75.0 | 50.0 | 50 % of 4 |" in page
