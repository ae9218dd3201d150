"""Writes the evaluation as one Markdown page, and says whether it is good enough."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from app.retrieval.lazy import parameters
from bench.evaluation import ModeResult, SetResult
from bench.measures import MEASURES, difference

OURS, YARDSTICK = "lazy-balanced", "baseline"
# On sets whose questions need one passage the graph cannot help; it may lose one question in a hundred.
ALLOWED_LOSS = 0.01


def verdicts(results: Sequence[SetResult]) -> list[str]:
    """What is not good enough, a line each; empty if everything is. Sets without both modes are not judged."""
    found = []
    for result in results:
        if OURS not in result.modes or YARDSTICK not in result.modes:
            continue
        gain = result.modes[OURS].mean("R@5") - result.modes[YARDSTICK].mean("R@5")
        label = result.evaluation.label
        if result.evaluation.is_multi_hop and gain <= 0:
            found.append(f"{label}: {OURS} does not beat {YARDSTICK} at R@5 ({100 * gain:+.1f} points)")
        elif gain < -ALLOWED_LOSS - 1e-9:
            found.append(f"{label}: {OURS} loses {-100 * gain:.1f} points of R@5 to {YARDSTICK}")
    return found


def render(results: Sequence[SetResult], modes: Sequence[str], *, embedding: str, command: str) -> str:
    """The whole page."""
    digest = sha256(Path(parameters.__file__).read_bytes()).hexdigest()[:12]
    lines = [
        "# Evaluation",
        "",
        f"Written by `{command}` with embeddings `{embedding}`; parameters `app/retrieval/lazy/parameters.py` at {digest}.",
        "Figures are percentages over the questions of a set; milliseconds are without the embedding of the question:",
        "the first question of a mode, and the median of the others. `n/a`: not measured. `rrf` is the reciprocal rank",
        "fusion of the first two rows.",
        "",
        f"## Gain of `{OURS}` over `{YARDSTICK}` at recall@5",
        "",
        "| set | passages | questions | gain in points, 95 % interval |",
        "| --- | --- | --- | --- |",
        *(_gain(result) for result in results),
        "",
        "## All figures",
        "",
        f"| set | mode | {' | '.join(MEASURES)} | first ms | warm ms |",
        "| --- | --- | " + " | ".join("---" for _ in MEASURES) + " | --- | --- |",
        *(line for result in results for line in _rows(result, modes)),
        "",
    ]
    failures = [f"- {r.evaluation.label}, {mode}: {why}" for r in results for mode, why in r.failures.items()]
    problems = [f"- {line}" for line in verdicts(results)]
    if failures:
        lines += ["## Not measured", "", *failures, ""]
    if problems:
        lines += ["## Not good enough", "", *problems, ""]
    return "\n".join(lines)


def _gain(result: SetResult) -> str:
    ours, theirs = result.modes.get(OURS), result.modes.get(YARDSTICK)
    cell = "n/a"
    if ours and theirs:
        mean, low, high = difference(ours.column("R@5"), theirs.column("R@5"))
        cell = f"{100 * mean:+.1f} [{100 * low:.1f}, {100 * high:.1f}]"
    evaluation = result.evaluation
    return f"| {evaluation.label} | {result.passages} | {len(evaluation.questions)} | {cell} |"


def _rows(result: SetResult, modes: Sequence[str]) -> Iterator[str]:
    for mode in modes:
        cells = _cells(result.modes.get(mode))
        yield f"| {result.evaluation.label} | {mode} | {' | '.join(cells)} |"


def _cells(found: ModeResult | None) -> list[str]:
    if found is None:
        return ["n/a"] * (len(MEASURES) + 2)
    return [*(f"{100 * found.mean(name):.1f}" for name in MEASURES), f"{found.first_ms:.1f}", f"{found.warm_ms:.1f}"]
