"""`make eval-theme-questions`: how many articles of a subject each mode brings for a question about all of it.

XQuAD's articles are one document each, without their titles, in a workspace a language; a whole installation with offline
models. A question is about several articles; the score is the part of these among the documents of the first passages.
"""

import gzip
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from bench.installation import installation, make_workspace
from bench.sidebyside.corpus import DEFAULT_FOLDER

QUESTIONS = Path(__file__).parents[1] / "tests" / "data" / "themes" / "questions.jsonl"
LANGUAGES = ("en", "zh", "ru", "ar")
MODES = ("baseline", "lazy", "global", "themes")
PASSAGES = 15
PATIENCE_SECONDS = 900


@dataclass(frozen=True)
class Scores:
    """Per mode the mean part of the articles that were covered, over the questions of one language."""

    language: str
    questions: int
    covered: Mapping[str, float]
    answers: Sequence[tuple[str, str, float]]  # group, labels of themes, part covered by them


def main(
    data: Annotated[Path, typer.Option(help="A folder with xquad_LANGUAGE.corpus.jsonl.gz.")] = DEFAULT_FOLDER,
    languages: Annotated[str, typer.Option(help="Comma-separated.")] = ",".join(LANGUAGES),
    output: Annotated[Path | None, typer.Option(help="Where the page goes, beside the terminal.")] = None,
) -> None:
    """Measure, and print the page."""
    if not (data / "xquad_en.corpus.jsonl.gz").exists():
        typer.echo(f"skipped: there is no XQuAD in {data}; say DATA=folder")
        return
    started = time.monotonic()
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    with installation("themes") as running, running.client(running.keys[0]) as client:
        scores = [_measure(client, data, language, rows) for language in languages.split(",")]
    page = _render(scores, time.monotonic() - started)
    typer.echo(page)
    if output is not None:
        output.write_text(page)


def _measure(client: httpx.Client, data: Path, language: str, rows: Sequence[Mapping[str, Any]]) -> Scores:
    workspace = make_workspace(client, "lazy", "graph")
    articles = _upload(client, workspace, data / f"xquad_{language}.corpus.jsonl.gz")
    _wait_for_map(client, workspace)
    covered: dict[str, list[float]] = {mode: [] for mode in MODES}
    answers = []
    for row in rows:
        wanted = set(row["articles"])
        for mode in MODES:
            answer = _ask(client, workspace, row[language], mode)
            passages = answer["evidence"]["passages"][:PASSAGES]
            found = {articles[passage["document_id"]] for passage in passages}
            covered[mode].append(len(found & wanted) / len(wanted))
            if mode == "themes":
                labels = " · ".join(item["label"] for item in answer["themes"]["items"])
                answers.append((row["group"], labels, covered[mode][-1]))
    means = {mode: sum(found) / len(found) for mode, found in covered.items()}
    return Scores(language, len(rows), means, answers)


def _ask(client: httpx.Client, workspace: str, question: str, mode: str) -> Any:
    amount = {"themes": {"max_context_chunks": PASSAGES}, "lazy": {"max_context_chunks": PASSAGES}}
    body = {"query": question, "mode": mode, **amount.get(mode, {"top_k": PASSAGES})}
    return client.post(f"/workspaces/{workspace}/query", json=body).raise_for_status().json()


def _upload(client: httpx.Client, workspace: str, file: Path) -> dict[str, str]:
    """The articles by the ids of their documents; all of them are indexed when it comes back."""
    texts: dict[str, list[str]] = {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            texts.setdefault(row["title"], []).append(row["text"])
    articles = {}
    for number, (title, paragraphs) in enumerate(texts.items()):
        body = {"text": "\n\n".join(paragraphs), "title": f"Document {number}"}
        made = client.post(f"/workspaces/{workspace}/documents", json=body).raise_for_status().json()
        articles[made["documents"][0]["id"]] = title
    deadline = time.monotonic() + PATIENCE_SECONDS
    for document_id in articles:
        status = ""
        while status != "ready":
            if time.monotonic() > deadline or status in ("failed", "cancelled"):
                raise RuntimeError(f"document {document_id} is {status}")
            answer = client.get(f"/workspaces/{workspace}/documents/{document_id}", params={"wait": 30})
            status = answer.raise_for_status().json()["status"]
    return articles


def _wait_for_map(client: httpx.Client, workspace: str) -> None:
    """Until there is a map of the corpus as it is now."""
    client.post(f"/workspaces/{workspace}/themes/refresh").raise_for_status()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = client.get(f"/workspaces/{workspace}/themes").raise_for_status().json()["map"]
        if found is not None and not found["is_stale"]:
            return
        time.sleep(1)
    raise RuntimeError(f"there is no map after {PATIENCE_SECONDS} s")


def _render(scores: Sequence[Scores], seconds: float) -> str:
    lines = [
        "# Questions about subjects",
        "",
        f"Written by `make eval-theme-questions LANGUAGES={','.join(found.language for found in scores)}`, which asks the"
        " questions of `tests/data/themes/questions.jsonl`.",
        "",
        f"Articles of a subject among the documents of the first {PASSAGES} passages, in per cent of those there are; mean over"
        f" {scores[0].questions} questions a language. XQuAD's 48 articles without titles, offline models.",
        "",
        f"| language | {' | '.join(f'`{mode}`' for mode in MODES)} |",
        f"| --- |{' --- |' * len(MODES)}",
    ]
    for found in scores:
        lines.append(f"| {found.language} | {' | '.join(f'{100 * found.covered[mode]:.1f}' for mode in MODES)} |")
    for found in scores:
        lines += ["", f"Themes told in {found.language}:", "", "| subject | covered | themes |", "| --- | --- | --- |"]
        lines += [f"| {group} | {100 * part:.0f} | {labels} |" for group, labels, part in found.answers]
    return "\n".join([*lines, "", f"It took {seconds:.0f} s.", ""])


if __name__ == "__main__":
    typer.run(main)
