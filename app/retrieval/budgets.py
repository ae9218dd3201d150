"""How much a query may look at and bring back."""

from dataclasses import dataclass
from typing import Final, Literal

DEFAULT_TOP_K: Final = 10  # passages of a mode without budgets of its own


@dataclass(frozen=True)
class LazyBudgets:
    """What a request says about the budgets of a lazy mode; None leaves a budget to the preset or the mode.

    `relevance_budget`: concepts expanded in each hop, `seed_k`: passages the walk starts from, `max_context_chunks`:
    passages returned, `max_concepts_per_chunk`: concepts read of a passage.
    """

    preset: Literal["showcase"] | None = None
    relevance_budget: int | None = None
    seed_k: int | None = None
    max_context_chunks: int | None = None
    max_concepts_per_chunk: int | None = None


NO_BUDGETS: Final = LazyBudgets()
