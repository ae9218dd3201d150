"""Writes the evaluation as one Markdown page, and says whether it is good enough."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from app.retrieval.lazy import parameters
from bench.evaluation import LEGS, SetResult
from bench.measures import MEASURES, difference, interval

OURS, YARDSTICK = "lazy-balanced", "baseline"
DECIDES = "R@5"
# On sets whose questions need one passage the graph cannot help; it may lose one question in a hundred.
ALLOWED_LOSS = 0.01
_MISSING = "n/a"
_TIMES = ("first ms", "warm ms")


def verdicts(results: Sequence[SetResult]) -> list[str]:
    """What is not good enough, a line each; empty if everything is. Sets without both modes are not judged."""
    found = []
    for result in results:
        gain = _gain(result, YARDSTICK)
        label = result.evaluation.label
        if gain is None:
            continue
        if result.evaluation.is_multi_hop and gain <= 0:
            found.append(f"{label}: {OURS} does not beat {YARDSTICK} at {DECIDES} ({100 * gain:+.1f} points)")
        elif gain < -ALLOWED_LOSS - 1e-9:
            found.append(f"{label}: {OURS} loses {-100 * gain:.1f} points of {DECIDES} to {YARDSTICK}")
    return found


def render(
    results: Sequence[SetResult], modes: Sequence[str], *, embedding: str, command: str, judge: str | None = None
) -> str:
    """The whole page."""
    digest = sha256(Path(parameters.__file__).read_bytes()).hexdigest()[:12]
    lines = [
        "# Evaluation",
        "",
        f"Written by `{command}` with embeddings `{embedding}`; parameters `app/retrieval/lazy/parameters.py` at {digest}.",
        "Figures are percentages over the questions of a set, with 95 % intervals by bootstrap over the questions;",
        "milliseconds are without the embedding of the question: the first question of a mode, and the median of the",
        "others. `n/a`: not measured. `bm25` and `vectors` are the legs of `baseline`, `rrf` their reciprocal rank fusion,",
        "`showcase` the plain co-occurrence search that the lazy modes set out from (`bench/showcase.py`), in memory.",
        "",
        f"## {DECIDES} and what `{OURS}` gains",
        "",
        *_headline(results, modes),
        "",
        "## All figures",
        "",
        f"| set | mode | {' | '.join([*MEASURES, *_TIMES])} |",
        "| --- | --- |" + " --- |" * (len(MEASURES) + len(_TIMES)),
        *(line for result in results for line in _rows(result, modes)),
        "",
    ]
    if judge is not None:
        lines += _judged(results, modes, judge)
    failures = [f"- {r.evaluation.label}, {mode}: {why}" for r in results for mode, why in r.failures.items()]
    problems = [f"- {line}" for line in verdicts(results)]
    if failures:
        lines += ["## Not measured", "", *failures, ""]
    if problems:
        lines += ["## Not good enough", "", *problems, ""]
    return "\n".join(lines)


def _headline(results: Sequence[SetResult], modes: Sequence[str]) -> Iterator[str]:
    """A row a set, derived ones beside theirs, then means; last the best of the legs and their fusion against ours."""
    yield f"| set | passages | questions | {' | '.join(modes)} | gain over {YARDSTICK} | over the best of {', '.join(LEGS)} |"
    yield "| --- |" + " --- |" * (len(modes) + 4)
    for result in results:
        evaluation = result.evaluation
        cells = [_percent(_mean(result, mode)) for mode in modes]
        gain = _gain_with_interval(result)
        best = max((value for mode in LEGS if (value := _mean(result, mode)) is not None), default=None)
        ours = _mean(result, OURS)
        over_best = _MISSING if best is None or ours is None else f"{100 * (ours - best):+.1f}"
        counts = f"{result.passages} | {len(evaluation.questions)}"
        yield f"| {evaluation.label} | {counts} | {' | '.join(cells)} | {gain} | {over_best} |"
    groups = {
        "multi-hop": [r for r in results if r.evaluation.is_multi_hop and not r.evaluation.variant],
        "multi-hop, no titles": _variant(results, "no titles"),
        "multi-hop, lower case": _variant(results, "lower case"),
        "multi-hop, long documents": _variant(results, "long documents"),
        "one passage": [r for r in results if not r.evaluation.is_multi_hop],
    }
    for name, group in groups.items():
        if group:
            means = [_mean_of(_mean(result, mode) for result in group) for mode in modes]
            gain = _points(_mean_of(_gain(result, YARDSTICK) for result in group))
            yield f"| **mean, {name}** | | | {' | '.join(_percent(mean) for mean in means)} | {gain} | |"


def _variant(results: Sequence[SetResult], variant: str) -> list[SetResult]:
    return [result for result in results if result.evaluation.variant == variant]


def _mean_of(values: Iterable[float | None]) -> float | None:
    """None if one is missing: a mean over other sets than the row says would mislead."""
    found = list(values)
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known and len(known) == len(found) else None


def _mean(result: SetResult, mode: str) -> float | None:
    return result.modes[mode].mean(DECIDES) if mode in result.modes else None


def _gain(result: SetResult, over: str) -> float | None:
    ours, theirs = _mean(result, OURS), _mean(result, over)
    return None if ours is None or theirs is None else ours - theirs


def _gain_with_interval(result: SetResult) -> str:
    ours, theirs = result.modes.get(OURS), result.modes.get(YARDSTICK)
    if ours is None or theirs is None:
        return _MISSING
    mean, low, high = difference(ours.column(DECIDES), theirs.column(DECIDES))
    return f"{100 * mean:+.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _percent(value: float | None) -> str:
    return _MISSING if value is None else f"{100 * value:.1f}"


def _points(value: float | None) -> str:
    return _MISSING if value is None else f"{100 * value:+.1f}"


def _rows(result: SetResult, modes: Sequence[str]) -> Iterator[str]:
    for mode in modes:
        cells = [_MISSING] * (len(MEASURES) + len(_TIMES))
        if (found := result.modes.get(mode)) is not None:
            cells = [_with_interval(found.column(name)) for name in MEASURES]
            cells += [f"{found.first_ms:.1f}", f"{found.warm_ms:.1f}"]
        yield f"| {result.evaluation.label} | {mode} | {' | '.join(cells)} |"


def _with_interval(values: Sequence[float]) -> str:
    low, high = interval(values)
    return f"{100 * float(np.mean(values)):.1f} [{100 * low:.0f}, {100 * high:.0f}]"


def _judged(results: Sequence[SetResult], modes: Sequence[str], judge: str) -> list[str]:
    lines = [
        f"## As `{judge}` judges",
        "",
        "The model answers from the first five passages and marks its answer. Coverage: the part of the questions whose",
        "marks could be read; the others are in no mean.",
        "",
        "| set | mode | faithfulness | relevance | coverage |",
        "| --- | --- | --- | --- | --- |",
    ]
    for result in results:
        for mode in modes:
            judgement = result.modes[mode].judgement if mode in result.modes else None
            if judgement is not None:
                marks = [_percent(judgement.mean(name)) for name in ("faithfulness", "relevance")]
                cells = [*marks, f"{100 * judgement.coverage:.0f} % of {judgement.asked}"]
                lines.append(f"| {result.evaluation.label} | {mode} | {' | '.join(cells)} |")
    return [*lines, ""]
