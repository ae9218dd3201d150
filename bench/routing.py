"""`make eval-routing`: how well `auto` picks modes for labelled questions, beside every fixed mode and the best for each question.

A whole installation with the offline models; no language model. A question counts as answered if all documents that its
answer needs are among the first eight passages. The oracle takes for each question the mode that does best.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from app.retrieval.contract import MODES, THEME_MODES
from app.retrieval.routing import PREFERRED, RoutingPolicy, Situation, canonical, route
from app.text.routing.features import QuestionKind, rank_kinds, read_features
from bench.installation import installation, make_workspace

DATA = Path(__file__).parents[1] / "tests" / "data" / "routing"
DEPTH = 8
ASKED_AT_ONCE = 2
PATIENCE_SECONDS = 600
FIT_GOAL, ORACLE_GOAL = 0.85, 0.02
SPLITS = {"tuned on": ("tune",), "held out": ("held_out",), "all": ("tune", "held_out")}
SITES = {"with the graph": ("lazy", "graph"), "without": ("lazy",)}


@dataclass(frozen=True)
class Labelled:
    """A question, its kind, and the documents that its answer needs."""

    language: str
    kind: QuestionKind
    split: str
    text: str
    gold: frozenset[str]


@dataclass(frozen=True)
class Measured:
    """A question with the share of 1 that each mode earns (none for questions without gold), and what `auto` picked."""

    question: Labelled
    earned: Mapping[str, float]
    picked: Mapping[str, str]

    def oracle(self, site: str) -> float:
        return max(gain for mode, gain in self.earned.items() if _is_there(mode, site))

    def is_fit(self, site: str) -> bool:
        """Whether `auto` picked what is best for the kind that the question has."""
        modes = PREFERRED[self.question.kind]
        # Themes are picked from the moment on that there is a map, which may be before or after the question.
        best = next(mode for mode in modes if mode in MODES and mode not in THEME_MODES and _is_there(mode, site))
        return self.picked[site] == best or self.picked[site] == modes[0]

    @property
    def is_kind_told(self) -> bool:
        return rank_kinds(read_features(self.question.text))[0][0] == self.question.kind


def main(
    output: Annotated[Path | None, typer.Option(help="Where the page goes, beside the terminal.")] = None,
) -> None:
    """Measure, print the page and write it; exit 1 if a goal is missed on all questions together."""
    started = time.monotonic()
    with installation("routing") as running, running.client(running.keys[0]) as client:
        workspace = make_workspace(client, "lazy", "graph")
        titles = _upload(client, workspace)
        measured = _measure(client, workspace, titles)
    page = _render(measured, time.monotonic() - started)
    typer.echo(page)
    if output is not None:
        output.write_text(page)
    if _missed(measured):
        raise typer.Exit(1)


def read_questions() -> list[Labelled]:
    return [
        Labelled(row["language"], QuestionKind(row["kind"]), row["split"], row["question"], frozenset(row["gold"]))
        for row in _rows("questions.jsonl")
    ]


def _rows(name: str) -> Iterator[dict[str, Any]]:
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _upload(client: httpx.Client, workspace: str) -> dict[str, str]:
    """The labels of the documents by their ids; all of them are indexed when it comes back."""
    labels = {}
    for row in _rows("documents.jsonl"):
        body = {"text": row["text"], "title": row["title"]}
        made = client.post(f"/workspaces/{workspace}/documents", json=body).raise_for_status().json()
        labels[made["documents"][0]["id"]] = row["id"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    for document_id in labels:
        status = ""
        while status != "ready":
            if time.monotonic() > deadline:
                raise RuntimeError(f"document {document_id} is {status} after {PATIENCE_SECONDS} s")
            answer = client.get(f"/workspaces/{workspace}/documents/{document_id}", params={"wait": 30})
            status = answer.raise_for_status().json()["status"]
            if status in ("failed", "cancelled"):
                raise RuntimeError(f"document {document_id} is {status}")
    return labels


def _measure(client: httpx.Client, workspace: str, labels: Mapping[str, str]) -> list[Measured]:
    modes = [mode for mode in MODES if canonical(mode) == mode and mode not in THEME_MODES]

    def gain(question: Labelled, answer: Any) -> float:
        passages = answer["evidence"]["passages"][:DEPTH]
        return float(question.gold <= {labels[passage["document_id"]] for passage in passages})

    def ask(question: str, mode: str) -> Any:
        body = {"query": question, "mode": mode, "top_k": DEPTH}
        return client.post(f"/workspaces/{workspace}/query", json=body).raise_for_status().json()

    def measure(question: Labelled) -> Measured:
        earned = {}
        for mode in modes if question.gold else ():
            earned[mode] = gain(question, ask(question.text, mode))
        picked = ask(question.text, "auto")
        if question.gold:
            earned.setdefault(picked["mode"], gain(question, picked))
        features = read_features(question.text)
        alone = route(features, Situation(("lazy",), {"lazy": len(labels)}), RoutingPolicy())
        return Measured(question, earned, {"with the graph": picked["mode"], "without": alone.mode})

    with ThreadPoolExecutor(ASKED_AT_ONCE) as threads:
        return list(threads.map(measure, read_questions()))


def _is_there(mode: str, site: str) -> bool:
    return MODES[mode] in SITES[site]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _of(measured: Sequence[Measured], split: str) -> list[Measured]:
    return [item for item in measured if item.question.split in SPLITS[split]]


def _gains(items: Sequence[Measured], site: str) -> tuple[float, float]:
    """Mean gain of `auto` and of the oracle over questions that have gold."""
    counted = [item for item in items if item.earned]
    return _mean([item.earned[item.picked[site]] for item in counted]), _mean([item.oracle(site) for item in counted])


def _missed(measured: Sequence[Measured]) -> bool:
    for site in SITES:
        gained, oracle = _gains(measured, site)
        if _mean([item.is_fit(site) for item in measured]) < FIT_GOAL or oracle - gained > ORACLE_GOAL:
            return True
    return False


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _render(measured: Sequence[Measured], seconds: float) -> str:
    lines = [
        "# How well `auto` picks modes",
        "",
        "Written by `make eval-routing`. 200 questions about 90 short documents, both written for this (`tests/data/routing/README.md`): 40 in each",
        "of five languages, 8 of each kind. The cues of the router and the order of modes were set after looking at half of them; the other",
        "half was held out, but the same people wrote questions and cues, so figures on questions of yours may be lower. Offline models,",
        "no language model anywhere.",
        "",
        "- *fits*: `auto` picked the mode that stands first for the kind the question is labelled with. *kind told*: it took it for that kind.",
        "- *all-gold@8*: all documents that the answer needs are among the first eight passages; of the 160 questions that need some.",
        "- *oracle*: the mode that does best for each question, which nobody knows beforehand.",
        "",
    ]
    for site in SITES:
        lines += _table(measured, site)
    lines += _kinds(measured)
    lines += [f"It took {seconds:.0f} s.", ""]
    return "\n".join(lines)


def _table(measured: Sequence[Measured], site: str) -> list[str]:
    lines = [
        f"## Workspaces {site}" + ("" if "graph" in site else " the graph"),
        "",
        "| questions | fits | kind told | all-gold@8 of `auto` | of the oracle | difference |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for split in SPLITS:
        items = _of(measured, split)
        gained, oracle = _gains(items, site)
        figures = [
            _mean([item.is_fit(site) for item in items]), _mean([item.is_kind_told for item in items]), gained, oracle, oracle - gained,
        ]  # fmt: skip
        lines.append(f"| {split} | {' | '.join(map(_percent, figures))} |")
    lines += ["", "all-gold@8 of each mode by kind of question, all questions:", ""]
    kinds = [kind for kind in QuestionKind if kind is not QuestionKind.CORPUS_WIDE]
    lines += [f"| mode | {' | '.join(kinds)} | held out | all |", "| --- |" + " --- |" * (len(kinds) + 2)]
    modes = [mode for mode in MODES if canonical(mode) == mode and mode not in THEME_MODES and _is_there(mode, site)]
    for name in ("auto", *modes):
        row = [_gain([item for item in measured if item.question.kind is kind], name, site) for kind in kinds]
        row += [_gain(_of(measured, "held out"), name, site), _gain(measured, name, site)]
        lines.append(f"| `{name}` | {' | '.join(map(_percent, row))} |")
    return [*lines, ""]


def _gain(items: Sequence[Measured], mode: str, site: str) -> float:
    return _mean([item.earned[item.picked[site] if mode == "auto" else mode] for item in items if item.earned])


def _kinds(measured: Sequence[Measured]) -> list[str]:
    lines = [
        "## Kinds told, by language",
        "",
        f"| language | {' | '.join(QuestionKind)} |",
        "| --- |" + " --- |" * len(QuestionKind),
    ]
    for language in dict.fromkeys(item.question.language for item in measured):
        cells = []
        for kind in QuestionKind:
            items = [item for item in measured if (item.question.language, item.question.kind) == (language, kind)]
            cells.append(f"{sum(item.is_kind_told for item in items)} of {len(items)}")
        lines.append(f"| {language} | {' | '.join(cells)} |")
    return [*lines, ""]


if __name__ == "__main__":
    typer.run(main)
