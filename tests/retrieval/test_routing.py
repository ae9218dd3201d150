"""Which mode `auto` picks: by the kind of question, what the workspace has, and what its settings say."""

import pytest

from app.retrieval.contract import GRAPH_MODES, MODES
from app.retrieval.routing import NoModeFits, RoutingPolicy, Situation, check_policy, route
from app.text.routing.features import QuestionKind, read_features

RELATION = read_features("How is Marta Oliveira connected to Kestrel Polymers?")
FACT = read_features("Who makes the seals?")
SURVEY = read_features("What are the main themes of the documents?")
BOTH = Situation(("lazy", "graph"), {"lazy": 10, "graph": 10})
LAZY_ONLY = Situation(("lazy",), {"lazy": 10})
ANY = RoutingPolicy()


def test_a_graph_is_used_once_it_has_the_documents() -> None:
    assert route(RELATION, BOTH, ANY).mode == "mix"
    for situation in (LAZY_ONLY, Situation(("lazy", "graph"), {"lazy": 10, "graph": 8})):
        found = route(RELATION, situation, ANY)
        assert found.mode not in GRAPH_MODES
        assert found.runner_up not in GRAPH_MODES
    assert "8 of 10 documents" in found.reason


def test_a_question_about_everything_goes_to_the_widest_mode() -> None:
    assert route(SURVEY, LAZY_ONLY, ANY).mode == "lazy-wide"


def test_it_says_why_and_what_came_next() -> None:
    found = route(FACT, BOTH, ANY)
    assert (found.mode, found.kind) == ("baseline", QuestionKind.FACT)
    assert found.reason.endswith(".")
    assert found.runner_up not in (None, found.mode)
    assert found.runner_up in MODES


def test_settings_of_the_workspace_go_first() -> None:
    assert route(FACT, BOTH, RoutingPolicy(overrides={QuestionKind.FACT: "lazy-fast"})).mode == "lazy-fast"
    assert route(RELATION, BOTH, RoutingPolicy(modes=("baseline",))).mode == "baseline"
    assert route(RELATION, BOTH, RoutingPolicy(is_cheap_only=True)).mode == "lazy-balanced"
    assert route(SURVEY, BOTH, RoutingPolicy(modes=("lazy", "mix"), is_cheap_only=True)).mode == "lazy-balanced"


def test_what_else_is_asked_for_leaves_the_modes_that_have_a_use_for_it() -> None:
    assert route(FACT, BOTH, ANY, fitting=("local", "mix")).mode == "mix"
    with pytest.raises(NoModeFits):
        route(FACT, LAZY_ONLY, ANY, fitting=("local", "mix"))


def test_settings_that_leave_nothing_are_refused() -> None:
    with pytest.raises(NoModeFits):
        check_policy(RoutingPolicy(modes=("mix",)), ("lazy",))
    with pytest.raises(NoModeFits):
        check_policy(RoutingPolicy(modes=("lazy-wide",), is_cheap_only=True), ("lazy",))
    check_policy(ANY, ("lazy",))
