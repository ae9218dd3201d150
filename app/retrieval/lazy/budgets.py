"""The budgets of one request: those of its mode, of a preset, and what it sets itself. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from app.retrieval.budgets import LazyBudgets
from app.retrieval.contract import SearchRequest, UnknownMode
from app.retrieval.lazy.parameters import DEFAULT_FLAVOUR, FLAVOURS, Flavour

# The table of the project in which lazy graph retrieval was shown first, to compare with it.
PRESETS: Final[Mapping[str, Mapping[str, LazyBudgets]]] = {
    "showcase": {
        "lazy-fast": LazyBudgets(None, 8, 4, 4, 16),
        "lazy-balanced": LazyBudgets(None, 24, 8, 8, 24),
        "lazy-wide": LazyBudgets(None, 64, 16, 12, 32),
    }
}


def flavour_of(request: SearchRequest) -> Flavour | None:
    """The flavour of a lazy mode with what the request changes of it; None for `baseline`, which has no budgets.

    Raises `UnknownMode` for a mode of another engine.
    """
    if request.mode == "baseline":
        return None
    mode = DEFAULT_FLAVOUR if request.mode == "lazy" else request.mode
    flavour = FLAVOURS.get(mode)
    if flavour is None:
        raise UnknownMode(f"'{request.mode}' is not a mode of the lazy engine", mode=request.mode)
    if request.budgets.preset is not None:
        flavour = _changed(flavour, PRESETS[request.budgets.preset][mode])
    if request.top_k is not None and request.budgets.max_context_chunks is None:
        flavour = replace(flavour, returned=request.top_k)
    return _changed(flavour, request.budgets)


def _changed(flavour: Flavour, budgets: LazyBudgets) -> Flavour:
    given = {
        "concepts": budgets.relevance_budget,
        "seeds": budgets.seed_k,
        "returned": budgets.max_context_chunks,
        "max_concepts_per_passage": budgets.max_concepts_per_chunk,
    }
    return replace(flavour, **{name: value for name, value in given.items() if value is not None})
