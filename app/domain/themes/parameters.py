"""What an installation says of its themes."""

from app.retrieval.themes.parameters import ThemeParameters
from app.settings import Settings


def parameters_of(settings: Settings) -> ThemeParameters:
    return ThemeParameters(
        min_passages=settings.themes_min_passages,
        max_passages=settings.themes_max_passages,
        size_weight=settings.themes_size_weight,
        distinctiveness_weight=settings.themes_distinctiveness_weight,
        density_weight=settings.themes_density_weight,
        formula=settings.themes_formula,
    )
