"""What a mode may look at: its own budgets, a preset, and what a request changes of them."""

from dataclasses import replace

import pytest

from app.retrieval.budgets import LazyBudgets
from app.retrieval.contract import LAZY_MODES, SearchRequest, UnknownMode
from app.retrieval.lazy.budgets import flavour_of
from app.retrieval.lazy.parameters import FLAVOURS, MAX_RANK, Flavour


def budgets(flavour: Flavour | None) -> tuple[int, int, int, int]:
    assert flavour is not None
    return flavour.concepts, flavour.seeds, flavour.returned, flavour.max_concepts_per_passage


def of(mode: str, **changes: object) -> tuple[int, int, int, int]:
    return budgets(flavour_of(SearchRequest("?", mode, budgets=replace(LazyBudgets(), **changes))))  # type: ignore[arg-type]


def test_each_mode_has_budgets_of_its_own() -> None:
    assert of("lazy-fast") == (8, 4, 4, 24)
    assert of("lazy") == of("lazy-balanced") == (16, 8, 8, 32)
    assert of("lazy-wide") == (24, 12, 12, 40)
    assert flavour_of(SearchRequest("?", "baseline")) is None


def test_the_showcase_has_a_table_of_its_own() -> None:
    assert of("lazy-fast", preset="showcase") == (8, 4, 4, 16)
    assert of("lazy", preset="showcase") == of("lazy-balanced", preset="showcase") == (24, 8, 8, 24)
    assert of("lazy-wide", preset="showcase") == (64, 16, 12, 32)


def test_a_request_goes_before_the_preset_and_the_mode() -> None:
    assert of("lazy-fast", relevance_budget=5, seed_k=3, max_context_chunks=20, max_concepts_per_chunk=7) == (
        5,
        3,
        20,
        7,
    )
    assert of("lazy-wide", preset="showcase", seed_k=2) == (64, 2, 12, 32)


def test_top_k_is_the_number_of_passages_unless_the_budget_says_it() -> None:
    request = SearchRequest("?", "lazy", top_k=30)
    assert budgets(flavour_of(request))[2] == 30
    assert budgets(flavour_of(replace(request, budgets=LazyBudgets(max_context_chunks=3))))[2] == 3
    assert budgets(flavour_of(replace(request, budgets=LazyBudgets(preset="showcase"))))[2] == 30


def test_the_index_holds_the_concepts_that_the_widest_mode_reads() -> None:
    assert max(flavour.max_concepts_per_passage for flavour in FLAVOURS.values()) == MAX_RANK


def test_a_graph_mode_is_refused() -> None:
    assert "mix" not in LAZY_MODES
    with pytest.raises(UnknownMode):
        flavour_of(SearchRequest("?", "mix"))
