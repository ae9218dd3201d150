"""What the demo does with a running Trellis: the road of a document from upload to deletion, checked at every step."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from app.cli.demo_client import DemoClient, DemoFailed
from app.cli.demo_progress import FINAL, Progress

INDEXING_SECONDS = 120
DELETION_SECONDS = 40
THEMES_SECONDS = 60
POLL_SECONDS = 0.3
SHOWN_LINES_OF_A_SECTION = 2
SHOWN_CITATIONS = 4
LINE_WIDTH = 150

QUESTION = "Why did the Tideline Sensors of the Port of Qingdao fail, and who supplied the new seals?"
CHINESE_QUESTION = "青岛港的冰情预报由谁负责？"


@dataclass(frozen=True)
class Merge:
    """Two names of one person, each in documents of its own, and a question by the name that stays."""

    source: str = "埃琳娜·彼得罗娃"
    target: str = "Elena Petrova"
    question: str = "What did Elena Petrova find out?"
    file_of_source: str = "08-sensor-maintenance-zh.txt"


@dataclass(frozen=True)
class Deletion:
    """A document that alone knows something, and a question for it."""

    file: str = "04-expansion-minutes.txt"
    question: str = "Who will lead the new office in Gdansk?"
    known_only_there: str = "Katarzyna Nowak"


class Scenario:
    """Runs the steps in order; raises DemoFailed at the first thing that is not as promised."""

    def __init__(self, client: DemoClient, console: Console, folder: Path) -> None:
        self.client = client
        self.console = console
        self.files = sorted(folder.iterdir())
        self.documents: dict[str, str] = {}
        self.modes: list[str] = []

    def run(self) -> None:
        self.title(f"Uploading {len(self.files)} documents (English and Chinese; Markdown, HTML, text, PDF, DOCX)")
        self.client.create_workspace("demo", ["lazy", "graph"])
        self.documents = self.client.upload(self.files)
        self.index()
        self.modes = self.client.modes()
        self.map_themes()
        self.ask_every_mode()
        self.merge(Merge())
        self.delete(Deletion())

    def index(self) -> None:
        """Show how far each document is until all are ready."""
        started = time.monotonic()
        progress = Progress(self.console, self.documents)
        with progress:
            while len(progress.done) < len(self.documents):
                for file, document_id in self.documents.items():
                    if file not in progress.done:
                        document = self.client.document(document_id)
                        progress.show(file, document)
                        if document["status"] in FINAL:
                            require(document["status"] == "ready", f"{file} ended as {document['status']}: {document}")
                missing = self.documents.keys() - progress.done
                require(
                    not missing or time.monotonic() - started < INDEXING_SECONDS,
                    f"not ready after {INDEXING_SECONDS} s: {', '.join(sorted(missing))}",
                )
                time.sleep(POLL_SECONDS)
        self.console.print(f"  all ready in {time.monotonic() - started:.1f} s")

    def map_themes(self) -> None:
        """Have the map of themes made, and tell what the documents are about."""
        self.title("What the documents are about, without a question and without a model")
        started = time.monotonic()
        self.client.refresh_themes(patience_seconds=THEMES_SECONDS)
        answer = self.client.query("", "themes")
        themes = answer["themes"]["items"]
        require(bool(themes), f"there are no themes: {answer['notices']}")
        for theme in themes:
            self.console.print(
                f"  [bold]{escape(theme['label'])}[/bold]  {theme['passages']} passages in {theme['documents']} documents",
                soft_wrap=True,
                highlight=False,
            )
        self.console.print(f"  mapped in {time.monotonic() - started:.1f} s")

    def ask_every_mode(self) -> None:
        self.title(f"One question in every mode: {QUESTION}")
        for mode in self.modes:
            answer = self.ask(QUESTION, mode)
            got = answer["routing"]["mode"] if mode == "auto" else mode  # what `auto` says that it picked
            require(answer["mode"] == got, f"asked for mode {mode}, got {answer['mode']}")
            calls = answer["usage"]["model_calls"]
            require(calls == 0, f"mode {mode} called a chat model {calls} times")
        self.title(f"And in Chinese: {CHINESE_QUESTION}")
        answer = self.ask(CHINESE_QUESTION, "lazy")
        require("刘芳" in answer["context"], "the Chinese question did not find the professor's name")

    def merge(self, merge: Merge) -> None:
        self.title(f"Merging {merge.source} into {merge.target}: one person, two languages")
        for name in (merge.source, merge.target):
            require(self.client.entity_exists(name), f"the graph has no entity {name!r} to merge")
        document_id = self.documents[merge.file_of_source]
        before = entity_of(self.client.query(merge.question, "local"), merge.target)
        require(
            document_id not in before["document_ids"], f"{merge.target} had {merge.file_of_source} before the merge"
        )
        self.client.merge([merge.source], merge.target)
        require(not self.client.entity_exists(merge.source), f"{merge.source!r} is still there after the merge")
        answer = self.ask(merge.question, "local")
        names = [entity["name"] for entity in answer["evidence"]["entities"]]
        require(merge.source not in names, f"{merge.source!r} is still among the evidence")
        require(
            document_id in entity_of(answer, merge.target)["document_ids"],
            f"{merge.target} does not answer with what {merge.file_of_source} says of {merge.source}",
        )
        self.console.print(
            f"  [green]✓[/green] {merge.target} answers for both names, from documents in both languages"
        )

    def delete(self, deletion: Deletion) -> None:
        self.title(f"Deleting {deletion.file}, the only one to know: {deletion.question}")
        document_id = self.documents[deletion.file]
        before = self.ask(deletion.question, "baseline")
        require(cites(before, document_id), f"{deletion.file} was not found before its deletion")
        self.client.delete(document_id, patience_seconds=DELETION_SECONDS)
        for mode in self.modes:
            after = self.client.query(deletion.question, mode)
            require(not cites(after, document_id), f"mode {mode} still cites the deleted document")
            require(deletion.known_only_there not in after["context"], f"mode {mode} still knows its content")
        self.console.print(f"  [green]✓[/green] no mode knows {deletion.known_only_there} any more")

    def ask(self, question: str, mode: str) -> dict[str, Any]:
        """Ask, show the answer shortened, and insist on evidence that says where it comes from."""
        answer = self.client.query(question, mode)
        self.console.print(
            f"\n  [bold cyan]{mode}[/bold cyan]  {answer['timings_ms']['total']:.0f} ms"
            f" · {answer['usage']['model_calls']} chat model calls · {answer['context_tokens']} tokens"
            f" · {len(answer['citations'])} citations"
        )
        for line in shortened(answer["context"]):
            self.console.print(f"    [dim]│[/dim] {escape(line)}", soft_wrap=True, highlight=False)
        for citation in answer["citations"][:SHOWN_CITATIONS]:
            self.console.print(f"    [yellow]↳[/yellow] {escape(place_of(citation))}", soft_wrap=True, highlight=False)
        require(bool(answer["context"].strip()), f"mode {mode} found no context")
        require(bool(answer["citations"]), f"mode {mode} gave no citations")
        return answer

    def title(self, text: str) -> None:
        self.console.print(f"\n[bold]{escape(text)}[/bold]", soft_wrap=True)


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise DemoFailed(otherwise)


def cites(answer: Mapping[str, Any], document_id: str) -> bool:
    return any(citation["document_id"] == document_id for citation in answer["citations"])


def entity_of(answer: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    for entity in answer["evidence"]["entities"]:
        if entity["name"] == name:
            found: Mapping[str, Any] = entity
            return found
    names = [entity["name"] for entity in answer["evidence"]["entities"]]
    raise DemoFailed(f"{name!r} is not among the entities of the evidence: {names}")


def place_of(citation: Mapping[str, Any]) -> str:
    """Where a citation points: document, heading, page, characters."""
    parts = [citation["title"], *citation["heading_path"]]
    if citation["page_start"]:
        parts.append(f"page {citation['page_start']}")
    place = " › ".join(dict.fromkeys(parts))
    return f"[{citation['number']}] {place}, characters {citation['char_start']}-{citation['char_end']}"


def shortened(context: str) -> list[str]:
    """The first lines of each section of a context, and how many more there are."""
    shown: list[str] = []
    for section in filter(None, context.strip().split("\n## ")):
        lines = [line.strip() for line in section.splitlines() if line.strip()]
        heading, body = lines[0].removeprefix("## "), lines[1:]
        rest = len(body) - SHOWN_LINES_OF_A_SECTION
        shown.append(f"{heading}" + (f" ({rest} more lines)" if rest > 0 else ""))
        for line in body[:SHOWN_LINES_OF_A_SECTION]:
            shown.append(f"  {line}" if len(line) <= LINE_WIDTH else f"  {line[:LINE_WIDTH]} …")
    return shown
