"""How many themes and passages one request wants. Pure."""

from app.retrieval.contract import SearchRequest
from app.retrieval.theme_contract import DEFAULT_THEMES, PASSAGES_PER_THEME


def themes_wanted(request: SearchRequest) -> int:
    return request.top_k or DEFAULT_THEMES


def passages_wanted(request: SearchRequest) -> int:
    """Of all themes together."""
    given = request.budgets.max_context_chunks
    return PASSAGES_PER_THEME * themes_wanted(request) if given is None else given
