"""Reads evaluation sets, and derives harder ones from them: without titles, in lower case, as long untitled documents.

A set NAME is `NAME.corpus.jsonl.gz` (`id`, `title`, `text`) and `NAME.dev.jsonl.gz` (`question`, `gold`: passage ids).
"""

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

CORPUS = ".corpus.jsonl.gz"
QUESTIONS = ".dev.jsonl.gz"
JOINED_SIZES = (10, 30)


@dataclass(frozen=True)
class SourcePassage:
    """A passage of the set within its document: `text[start:end]`."""

    id: str
    start: int
    end: int


@dataclass(frozen=True)
class SourceDocument:
    title: str
    text: str
    passages: tuple[SourcePassage, ...]


@dataclass(frozen=True)
class Question:
    text: str
    gold: frozenset[str]


@dataclass(frozen=True)
class EvaluationSet:
    """Documents to index and questions about them. `variant` says how it was derived, '' for the set as it came."""

    name: str
    documents: tuple[SourceDocument, ...]
    questions: tuple[Question, ...]
    variant: str = ""

    @property
    def is_multi_hop(self) -> bool:
        """Whether questions need more than one passage."""
        return any(len(question.gold) > 1 for question in self.questions)

    @property
    def passage_ids(self) -> list[str]:
        return [passage.id for document in self.documents for passage in document.passages]

    @property
    def label(self) -> str:
        return f"{self.name}, {self.variant}" if self.variant else self.name


def read_sets(folder: Path, names: Sequence[str], limit: int | None) -> Iterator[EvaluationSet]:
    """The sets of a folder in order of their names, with at most `limit` questions each; all of them if `names` is empty."""
    found = sorted(path.name.removesuffix(CORPUS) for path in folder.glob(f"*{CORPUS}"))
    for name in names or found:
        corpus = _lines(folder / f"{name}{CORPUS}")
        questions = _lines(folder / f"{name}{QUESTIONS}")[:limit]
        yield EvaluationSet(
            name,
            tuple(_document(row) for row in corpus),
            tuple(Question(row["question"], frozenset(row["gold"])) for row in questions),
        )


# Questions in one language about a corpus in another; whatever the two share must not lead astray.
CROSS_LANGUAGE = (("xquad_en", "xquad_zh"), ("xquad_en", "xquad_de"))


def cross_language(sets: Sequence[EvaluationSet]) -> Iterator[EvaluationSet]:
    """Sets over a translated corpus with the questions of the original, where both are there with the same passages."""
    by_name = {found.name: found for found in sets}
    for asked, answered in CROSS_LANGUAGE:
        questions, corpus = by_name.get(asked), by_name.get(answered)
        if questions is not None and corpus is not None and questions.passage_ids == corpus.passage_ids:
            yield replace(corpus, questions=questions.questions, variant=f"questions of {asked}")


def variants(original: EvaluationSet) -> Iterator[EvaluationSet]:
    """What a multi-hop set becomes when its titles, which are names there, give nothing away."""
    if original.is_multi_hop:
        yield without_titles(original)
        yield in_lower_case(original)
        yield as_long_documents(original)


def without_titles(original: EvaluationSet) -> EvaluationSet:
    """The same documents with empty titles."""
    documents = tuple(replace(document, title="") for document in original.documents)
    return replace(original, documents=documents, variant="no titles")


def in_lower_case(original: EvaluationSet) -> EvaluationSet:
    """Titles, texts and questions without a capital."""
    documents = tuple(
        # Letters whose lower case is longer would move the ends of the passages.
        replace(document, title=document.title.lower(), text="".join(char.lower()[:1] for char in document.text))
        for document in original.documents
    )
    questions = tuple(replace(question, text=question.text.lower()) for question in original.questions)
    return replace(original, documents=documents, questions=questions, variant="lower case")


def as_long_documents(original: EvaluationSet, seed: int = 7) -> EvaluationSet:
    """Untitled documents of 10 to 30 passages each, joined in random order."""
    order = random.Random(seed)  # noqa: S311 - reproducible, not secret
    rest = list(original.documents)
    order.shuffle(rest)
    documents = []
    while rest:
        size = order.randint(*JOINED_SIZES)
        documents.append(_joined(rest[:size]))
        rest = rest[size:]
    return replace(original, documents=tuple(documents), variant="long documents")


def _joined(parts: Sequence[SourceDocument]) -> SourceDocument:
    passages = []
    texts = []
    position = 0
    for part in parts:
        passages += [SourcePassage(p.id, p.start + position, p.end + position) for p in part.passages]
        texts.append(part.text)
        position += len(part.text) + 2
    return SourceDocument("", "\n\n".join(texts), tuple(passages))


def _document(row: dict[str, Any]) -> SourceDocument:
    title = (row["title"] or "").replace("_", " ")
    return SourceDocument(title, row["text"], (SourcePassage(row["id"], 0, len(row["text"])),))


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
