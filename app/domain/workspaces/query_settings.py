"""What a workspace may choose about its queries: how `auto` picks modes, and what is kept of what was asked."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.retrieval.contract import MODES
from app.retrieval.routing import RoutingPolicy
from app.retrieval.theme_contract import COVERAGE_WEIGHT
from app.text.routing.features import QuestionKind


def _known_mode(mode: str) -> str:
    if mode not in MODES:
        raise ValueError(f"must be one of {', '.join(MODES)}")
    return mode


ModeName = Annotated[str, AfterValidator(_known_mode)]


class QuerySettings(BaseModel):
    """Nothing here changes how documents are indexed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    auto_modes: tuple[ModeName, ...] = Field(
        default=(), max_length=20, description="Modes that `auto` may pick; empty: all that the workspace has."
    )
    auto_overrides: dict[QuestionKind, ModeName] = Field(
        default={}, description="The mode of `auto` for a kind of question, in place of the built-in choice."
    )
    auto_cheap_only: bool = Field(default=False, description="`auto` picks no graph mode and no wide walk.")
    query_log_share: float = Field(default=1.0, ge=0, le=1, description="Part of the queries that are logged.")
    query_log_text: bool = Field(default=False, description="Whether the log keeps the text of questions.")

    theme_coverage_weight: float = Field(
        default=COVERAGE_WEIGHT,
        ge=0,
        le=1,
        description="Of a question's coverage in the rank of a theme; the theme's importance has the rest.",
    )

    theme_reports: bool = Field(default=False, description="Whether the chat model may be asked for reports of themes.")

    @property
    def routing(self) -> RoutingPolicy:
        return RoutingPolicy(self.auto_modes, self.auto_overrides, self.auto_cheap_only)
