"""Groups consecutive passages into chunks, the unit the knowledge graph is extracted from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from app.text.tokens import count_tokens

ChunkingStrategy = Literal["recursive", "fixed", "sentence", "semantic"]

# A semantic break needs this share of chunk_tokens on both sides, or one odd passage would make a chunk.
_SMALLEST_SHARE: Final = 8
_SEPARATOR_TOKENS: Final = 2
# At least a blank line lies between two paragraphs, at most one character between sentences or lines.
_PARAGRAPH_GAP: Final = 2


@dataclass(frozen=True, slots=True)
class ChunkingProfile:
    """How passages become chunks of at most `chunk_tokens`.

    Passages are never cut, so all strategies keep sentences whole; they differ in where chunks end:
    - `recursive`: at headings, the outermost first, then at paragraphs, then between any two passages.
      Neighbouring small sections share a chunk.
    - `fixed`: wherever the next passage does not fit any more; headings and paragraphs are ignored.
    - `sentence`: never holds two headings; a section that is too large is cut into chunks of about equal size.
    - `semantic`: where neighbouring passages' embeddings are least alike (one standard deviation below
      the document's mean, and wherever else the size asks for a cut).
    """

    strategy: ChunkingStrategy = "recursive"
    chunk_tokens: int = 1200


class Passage(Protocol):
    """What grouping reads of a passage; drafts and stored rows both have it."""

    @property
    def text(self) -> str: ...
    @property
    def char_start(self) -> int: ...
    @property
    def char_end(self) -> int: ...
    @property
    def heading_path(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """Passages `first_passage` to `last_passage` (positions in the list given, both included) as one text.

    `text` names the heading path on a line of its own wherever it changes; `tokens` counts all of it.
    """

    ordinal: int
    first_passage: int
    last_passage: int
    text: str
    tokens: int


def group_chunks(
    passages: Sequence[Passage], profile: ChunkingProfile, vectors: NDArray[np.float32] | None = None
) -> list[ChunkDraft]:
    """Chunks in order that cover each passage exactly once, none empty, without overlap.

    A chunk is larger than `profile.chunk_tokens` only where a single passage (with its headings) is.
    `vectors` has shape (passages, dimension) and is needed by `semantic` alone: ValueError without it.
    """
    if profile.chunk_tokens < 1:
        raise ValueError("chunk_tokens must be at least 1")
    if not passages:
        return []
    sizes = _Sizes(passages, profile.chunk_tokens)
    ranges: Iterator[tuple[int, int]]
    if profile.strategy == "semantic":
        ranges = _semantic(sizes, _similarities(vectors, len(passages)))
    else:
        ranges = _GROUPERS[profile.strategy](sizes)
    drafts: list[ChunkDraft] = []
    for first, stop, text, tokens in _rendered(passages, ranges, profile.chunk_tokens):
        drafts.append(ChunkDraft(len(drafts), first, stop - 1, text, tokens))
    return drafts


def _rendered(
    passages: Sequence[Passage], ranges: Iterator[tuple[int, int]], limit: int
) -> Iterator[tuple[int, int, str, int]]:
    """Texts of the ranges, each with its true count: where the sums of `_Sizes` were too low, the range is halved."""
    for chosen in ranges:
        stack = [chosen]
        while stack:
            first, stop = stack.pop()
            text = render_chunk(passages[first:stop])
            tokens = count_tokens(text)
            if tokens > limit and stop - first > 1:
                middle = (first + stop) // 2
                stack += [(middle, stop), (first, middle)]
            else:
                yield first, stop, text, tokens


class _Sizes:
    """Estimates the tokens of any range of passages from one count for each passage, separators included."""

    def __init__(self, passages: Sequence[Passage], limit: int) -> None:
        self.passages = passages
        self.limit = limit
        self.paths = [tuple(passage.heading_path) for passage in passages]
        bodies = [count_tokens(passage.text) + _SEPARATOR_TOKENS for passage in passages]
        self._heads = [count_tokens(_heading_line(path)) + _SEPARATOR_TOKENS if path else 0 for path in self.paths]
        changes = [
            self._heads[index] if index and self.paths[index] != self.paths[index - 1] else 0
            for index in range(len(passages))
        ]
        self._body_sums = _prefix_sums(bodies)
        self._change_sums = _prefix_sums(changes)

    def __len__(self) -> int:
        return len(self.passages)

    def of(self, first: int, stop: int) -> int:
        """Tokens of passages `first` up to, not including, `stop`."""
        bodies = self._body_sums[stop] - self._body_sums[first]
        changes = self._change_sums[stop] - self._change_sums[first + 1]
        return bodies + changes + self._heads[first]

    def fits(self, first: int, stop: int) -> bool:
        return stop - first <= 1 or self.of(first, stop) <= self.limit


def _prefix_sums(values: list[int]) -> list[int]:
    sums = [0]
    for value in values:
        sums.append(sums[-1] + value)
    return sums


def _heading_line(path: Sequence[str]) -> str:
    return "# " + " > ".join(path)


def render_chunk(passages: Sequence[Passage]) -> str:
    """The text of a chunk of these consecutive passages, the same whenever it is made: cached answers are found by it."""
    parts: list[str] = []
    path: tuple[str, ...] = ()
    for index, passage in enumerate(passages):
        if index:
            parts.append(_separator(passages[index - 1], passage))
        own = tuple(passage.heading_path)
        if own and own != path:
            parts.append(_heading_line(own) + "\n\n")
        path = own
        parts.append(passage.text)
    return "".join(parts)


def _separator(before: Passage, after: Passage) -> str:
    """Blank line between paragraphs, line end between sentences or table rows, nothing where the source has nothing."""
    if tuple(before.heading_path) != tuple(after.heading_path):
        return "\n\n"
    gap = after.char_start - before.char_end
    return "" if gap == 0 else "\n" if gap == 1 else "\n\n"


def _fixed(sizes: _Sizes) -> Iterator[tuple[int, int]]:
    yield from _merge(sizes, [(index, index + 1) for index in range(len(sizes))])


def _merge(sizes: _Sizes, parts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Joins neighbouring parts in order as long as they fit together."""
    first, stop = parts[0]
    for left, right in parts[1:]:
        if sizes.fits(first, right):
            stop = right
            continue
        yield first, stop
        first, stop = left, right
    yield first, stop


def _recursive(sizes: _Sizes) -> Iterator[tuple[int, int]]:
    yield from _divide(sizes, 0, len(sizes), 0)


def _divide(sizes: _Sizes, first: int, stop: int, level: int) -> Iterator[tuple[int, int]]:
    """Chunks of one range: whole if it fits, else split at the next level that splits it, small parts rejoined."""
    if sizes.fits(first, stop):
        yield first, stop
        return
    deepest = max(len(sizes.paths[index]) for index in range(first, stop))
    parts = [(first, stop)]
    while len(parts) == 1 and level <= deepest + 1:
        parts = _split_at_level(sizes, first, stop, level, deepest)
        level += 1
    pieces: list[tuple[int, int]] = []
    for left, right in parts:
        pieces.extend(_divide(sizes, left, right, level))
    yield from _merge(sizes, pieces)


def _split_at_level(sizes: _Sizes, first: int, stop: int, level: int, deepest: int) -> list[tuple[int, int]]:
    """Level 0 splits by outermost heading, then inner ones, then paragraphs, then every passage."""
    edges = [first, *(at for at in range(first + 1, stop) if _is_break(sizes, at, level, deepest)), stop]
    return list(pairwise(edges))


def _is_break(sizes: _Sizes, at: int, level: int, deepest: int) -> bool:
    if level < deepest:
        return sizes.paths[at][: level + 1] != sizes.paths[at - 1][: level + 1]
    if level == deepest:
        return sizes.passages[at].char_start - sizes.passages[at - 1].char_end >= _PARAGRAPH_GAP
    return True


def _sentence(sizes: _Sizes) -> Iterator[tuple[int, int]]:
    edges = [0, *(at for at in range(1, len(sizes)) if sizes.paths[at] != sizes.paths[at - 1]), len(sizes)]
    for first, stop in pairwise(edges):
        yield from _even(sizes, first, stop)


def _even(sizes: _Sizes, first: int, stop: int) -> Iterator[tuple[int, int]]:
    """The fewest chunks for one section, evened out by aiming each at its share of what is left."""
    wanted = len(list(_merge(sizes, [(index, index + 1) for index in range(first, stop)])))
    start = first
    while start < stop:
        share = sizes.of(start, stop) / max(1, wanted)
        end = start + 1
        while end < stop and sizes.fits(start, end + 1) and sizes.of(start, end) < share:
            end += 1
        yield start, end
        start, wanted = end, wanted - 1


def _similarities(vectors: NDArray[np.float32] | None, count: int) -> NDArray[np.float64]:
    """Cosine of each passage with the next one: shape (count - 1,)."""
    if vectors is None or vectors.ndim != 2 or len(vectors) != count:
        raise ValueError(f"semantic chunking needs one vector for each of the {count} passages")
    rows = vectors.astype(np.float64)
    norms = np.linalg.norm(rows, axis=1)
    norms[norms == 0] = 1.0
    unit = rows / norms[:, None]
    return np.asarray(np.einsum("ij,ij->i", unit[:-1], unit[1:]), dtype=np.float64)


def _semantic(sizes: _Sizes, similarities: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Splits at the lowest similarity until every range fits and holds no dip with enough text on both sides."""
    threshold = float(similarities.mean() - similarities.std()) if len(similarities) else 0.0
    smallest = sizes.limit / _SMALLEST_SHARE
    stack = [(0, len(sizes))]
    while stack:
        first, stop = stack.pop()
        cut = _weakest(sizes, similarities, first, stop, smallest)
        has_to = not sizes.fits(first, stop)
        if cut is not None and (has_to or similarities[cut - 1] < threshold):
            stack += [(cut, stop), (first, cut)]
        elif has_to:
            middle = first + 1 + int(np.argmin(similarities[first : stop - 1]))
            stack += [(middle, stop), (first, middle)]
        else:
            yield first, stop


def _weakest(sizes: _Sizes, similarities: NDArray[np.float64], first: int, stop: int, smallest: float) -> int | None:
    """The passage before which the range is best cut, with at least `smallest` tokens on both sides."""
    left, right = first + 1, stop - 1
    while left <= right and sizes.of(first, left) < smallest:
        left += 1
    while right >= left and sizes.of(right, stop) < smallest:
        right -= 1
    if left > right:
        return None
    return left + int(np.argmin(similarities[left - 1 : right]))


_GROUPERS: Final[dict[str, Callable[[_Sizes], Iterator[tuple[int, int]]]]] = {
    "recursive": _recursive,
    "fixed": _fixed,
    "sentence": _sentence,
}
