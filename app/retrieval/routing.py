"""Picks a mode for `auto`, by the form of a question and by what the workspace has. Pure: no model, no I/O."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.errors import Invalid
from app.retrieval.contract import GRAPH_MODES, MODES, THEME_MODES, Engine
from app.text.routing.features import QuestionFeatures, QuestionKind, rank_kinds

AUTO: Final = "auto"

# For each kind the modes that suit it, the best first; a mode that does not exist here or now is passed over, so a mode that
# is added later is chosen as soon as it stands here. `make eval-routing` measured the order.
PREFERRED: Final[Mapping[QuestionKind, tuple[str, ...]]] = {
    QuestionKind.FACT: ("baseline", "lazy-fast", "lazy-balanced", "naive"),
    QuestionKind.RELATION: ("mix", "hybrid", "local", "lazy-balanced", "lazy-wide"),
    QuestionKind.MULTI_HOP: ("lazy-wide", "lazy-balanced", "mix", "lazy-fast"),
    QuestionKind.COMPARISON: ("lazy-balanced", "lazy-wide", "mix", "baseline"),
    QuestionKind.CORPUS_WIDE: ("themes", "lazy-wide", "global", "mix", "lazy-balanced"),
}
# What is left if nothing of the above may be used.
LAST_RESORT: Final = (
    "lazy-balanced",
    "baseline",
    "lazy-fast",
    "lazy-wide",
    "mix",
    "hybrid",
    "local",
    "global",
    "naive",
    "themes",
)
# One hop or none, and short contexts: no graph, no wide walk.
CHEAP_MODES: Final = ("baseline", "lazy-fast", "lazy-balanced", "naive", "themes")
# A graph that lacks more of the documents than this would answer from a part of the corpus.
READY_SHARE: Final = 0.9


class NoModeFits(Invalid):
    """What the question asks for and what the workspace allows leave `auto` no mode."""

    code = "no_mode_fits"
    title = "No mode fits"


@dataclass(frozen=True)
class RoutingPolicy:
    """What a workspace says about `auto`; `modes` empty allows all, `overrides` name the mode of a kind."""

    modes: tuple[str, ...] = ()
    overrides: Mapping[QuestionKind, str] = field(default_factory=dict)
    is_cheap_only: bool = False

    def allowed(self, engines: Collection[str]) -> tuple[str, ...]:
        """The modes that `auto` may pick in a workspace with these engines."""
        named = set(self.modes or MODES) | set(self.overrides.values())
        return tuple(
            mode
            for mode in LAST_RESORT
            if canonical(mode) in {canonical(name) for name in named}
            and MODES[mode] in engines
            and (not self.is_cheap_only or mode in CHEAP_MODES)
        )


@dataclass(frozen=True)
class Situation:
    """What a workspace has: its engines, how many documents each answers from, and whether there is a map of themes."""

    engines: tuple[str, ...]
    documents: Mapping[Engine, int]
    has_themes: bool = False

    def is_ready(self, mode: str) -> bool:
        """Whether the mode has what it answers from."""
        if mode in THEME_MODES:
            return self.has_themes
        return self.is_graph_ready or mode not in GRAPH_MODES

    @property
    def is_graph_ready(self) -> bool:
        lazy = self.documents.get("lazy", 0)
        return "graph" in self.engines and self.documents.get("graph", 0) >= max(1, lazy * READY_SHARE)


@dataclass(frozen=True)
class Routing:
    """The mode that `auto` picked, and why. `runner_up` is None where nothing else could be picked."""

    mode: str
    kind: QuestionKind
    reason: str
    runner_up: str | None
    features: Mapping[str, Any]


def canonical(mode: str) -> str:
    """Two names are one mode."""
    return "lazy-balanced" if mode == "lazy" else mode


def route(
    features: QuestionFeatures, situation: Situation, policy: RoutingPolicy, fitting: Collection[str] | None = None
) -> Routing:
    """The mode for a question. `fitting`: the modes that have a use for what else was asked for; None for all.

    Raises NoModeFits if nothing is left.
    """
    allowed = [mode for mode in policy.allowed(situation.engines) if fitting is None or mode in fitting]
    usable = [mode for mode in allowed if situation.is_ready(mode)] or allowed
    if not usable:
        raise NoModeFits(
            "No mode that this workspace allows has a use for what the question asks for.",
            allowed=list(policy.allowed(situation.engines)),
        )
    ranked = rank_kinds(features)
    kind = ranked[0][0]
    order = [mode for each, _ in ranked for mode in _order(each, policy) if mode in usable]
    order += [mode for mode in LAST_RESORT if mode in usable]
    mode = order[0]
    second = _order(ranked[1][0], policy) if ranked[1][1] > 0 else ()
    others = [other for other in (*second, *order) if other in usable and other != mode]
    return Routing(
        mode=mode,
        kind=kind,
        reason=_reason(features, kind, mode, situation, policy),
        runner_up=others[0] if others else None,
        features={
            **features.counts,
            "documents": dict(situation.documents),
            "graph_ready": situation.is_graph_ready,
            "themes_ready": situation.has_themes,
        },
    )


def check_policy(policy: RoutingPolicy, engines: Sequence[str]) -> None:
    """Raises NoModeFits if the policy leaves a workspace with these engines no mode."""
    if not policy.allowed(engines):
        raise NoModeFits("These settings of `auto` leave no mode that the workspace has.", engines=list(engines))


def _order(kind: QuestionKind, policy: RoutingPolicy) -> tuple[str, ...]:
    own = policy.overrides.get(kind)
    return (canonical(own), *PREFERRED[kind]) if own is not None else PREFERRED[kind]


_SIGNS: Final[Mapping[QuestionKind, str]] = {
    QuestionKind.FACT: "no words that compare, relate or sum up: taken for a plain fact",
    QuestionKind.RELATION: "words that ask how things are related",
    QuestionKind.MULTI_HOP: "describes what it asks for by something else, so several steps are needed",
    QuestionKind.COMPARISON: "words that compare things",
    QuestionKind.CORPUS_WIDE: "asks about the documents as a whole",
}


def _reason(
    features: QuestionFeatures, kind: QuestionKind, mode: str, situation: Situation, policy: RoutingPolicy
) -> str:
    reason = f"{_SIGNS[kind]}."
    if not features.terms:
        reason = "No word to go by: taken for a plain fact."
    if kind in policy.overrides and canonical(policy.overrides[kind]) == mode:
        return f"{_sentence(reason)} The workspace's settings name this mode for such questions."
    if mode != PREFERRED[kind][0]:
        reason = f"{_sentence(reason)} {_passed_over(kind, mode, situation)}"
    return _sentence(reason)


def _passed_over(kind: QuestionKind, mode: str, situation: Situation) -> str:
    before = PREFERRED[kind][: PREFERRED[kind].index(mode)] if mode in PREFERRED[kind] else PREFERRED[kind]
    known = [name for name in before if name in MODES]
    if set(known) & set(THEME_MODES) and not situation.has_themes:
        known = [name for name in known if name not in THEME_MODES]
        rest = _passed_over_modes(known, situation)
        return f"The workspace has no themes now. {rest}".strip()
    return _passed_over_modes(known, situation)


def _passed_over_modes(known: Sequence[str], situation: Situation) -> str:
    if "graph" in situation.engines and not situation.is_graph_ready and set(known) & set(GRAPH_MODES):
        return (
            f"The graph has {situation.documents.get('graph', 0)} of {situation.documents.get('lazy', 0)} documents,"
            " so no graph mode is used."
        )
    return f"Not available here: {', '.join(known)}." if known else ""


def _sentence(text: str) -> str:
    return (text[:1].upper() + text[1:]).strip()
