"""The documents of the benches: passages of a public corpus, put together in order, so that no two runs differ."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
# Beside the checkout, where whoever downloads the evaluation sets keeps them for several projects.
DEFAULT_FOLDER = PROJECT.parent / "shared" / "data" / "retrieval"
CORPUS = "2wiki"


class CorpusMissing(RuntimeError):
    """The corpus is not where it was looked for; the message says what to give."""


@dataclass(frozen=True)
class Document:
    """One plain text with a name of its own."""

    name: str
    text: str

    @property
    def size(self) -> int:
        return len(self.text.encode())


@dataclass(frozen=True)
class Question:
    """One question of the corpus's evaluation set."""

    id: str
    text: str


def load_documents(folder: Path, count: int, passages_each: int) -> list[Document]:
    """`count` documents of `passages_each` consecutive passages. Raises CorpusMissing."""
    rows = _read(folder, f"{CORPUS}.corpus.jsonl.gz")
    wanted = count * passages_each
    if len(rows) < wanted:
        raise CorpusMissing(f"{folder} has {len(rows)} passages of {CORPUS}; {wanted} are needed")
    passages = [f"{row['title']}\n{row['text']}" for row in rows[:wanted]]
    return [
        Document(f"document-{start // passages_each + 1:03d}.txt", "\n\n".join(passages[start : start + passages_each]))
        for start in range(0, wanted, passages_each)
    ]


def load_questions(folder: Path, count: int) -> list[Question]:
    """The first `count` questions, those of the sibling set after the corpus's own. Raises CorpusMissing."""
    rows = [*_read(folder, f"{CORPUS}.dev.jsonl.gz"), *_read(folder, f"{CORPUS}_context.dev.jsonl.gz")]
    known = {row["question"]: Question(row["id"], row["question"]) for row in rows}
    if len(known) < count:
        raise CorpusMissing(f"{folder} has {len(known)} questions; {count} are needed")
    return list(known.values())[:count]


def _read(folder: Path, name: str) -> list[dict[str, str]]:
    path = folder / name
    if not path.is_file():
        raise CorpusMissing(
            f"The benches read {name} (lines of JSON with id, title and text) and {folder} does not hold it.\n"
            "Say where the evaluation sets are: make bench-ingest DATA=/path/to/folder"
        )
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
