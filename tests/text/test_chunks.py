"""Chunks: consecutive passages, each exactly once, within the limit, ended where the strategy says."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.text.chunks import ChunkDraft, ChunkingProfile, ChunkingStrategy, group_chunks
from app.text.passages import PassageDraft
from app.text.tokens import count_tokens

STRATEGIES: list[ChunkingStrategy] = ["recursive", "fixed", "sentence", "semantic"]


def passages_of(*items: tuple[str, tuple[str, ...]], gap: int = 2) -> list[PassageDraft]:
    drafts = []
    position = 0
    for index, (text, path) in enumerate(items):
        end = position + len(text)
        drafts.append(PassageDraft(index, text, count_tokens(text), None, None, position, end, path, 1))
        position = end + gap
    return drafts


def ranges(chunks: list[ChunkDraft]) -> list[tuple[int, int]]:
    return [(chunk.first_passage, chunk.last_passage) for chunk in chunks]


WORDS_50 = "word " * 49 + "end."


def test_recursive_ends_chunks_at_headings_before_the_limit_is_reached() -> None:
    a, b = ("Manual", "Start"), ("Manual", "Care")
    passages = passages_of(*[(WORDS_50, a)] * 3, *[(WORDS_50, b)] * 3)
    chunks = group_chunks(passages, ChunkingProfile("recursive", 250))
    assert ranges(chunks) == [(0, 2), (3, 5)]
    assert chunks[0].text.startswith("# Manual > Start\n\nword")


def test_recursive_puts_small_neighbouring_sections_into_one_chunk() -> None:
    passages = passages_of(*[(f"Body {n}.", ("Manual", f"Part {n}")) for n in range(5)])
    (chunk,) = group_chunks(passages, ChunkingProfile("recursive", 300))
    assert [line for line in chunk.text.split("\n") if line.startswith("#")] == [
        f"# Manual > Part {n}" for n in range(5)
    ]


def test_recursive_prefers_the_end_of_a_paragraph_inside_a_section() -> None:
    first = passages_of(*[(WORDS_50, ())] * 2, gap=1)
    shift = first[-1].char_end + 2
    second = [
        PassageDraft(2 + p.ordinal, p.text, p.tokens, None, None, p.char_start + shift, p.char_end + shift, (), 1)
        for p in passages_of(*[(WORDS_50, ())] * 2, gap=1)
    ]
    assert ranges(group_chunks([*first, *second], ChunkingProfile("recursive", 180))) == [(0, 1), (2, 3)]
    assert ranges(group_chunks([*first, *second], ChunkingProfile("fixed", 180))) == [(0, 2), (3, 3)]


def test_fixed_fills_chunks_over_headings() -> None:
    passages = passages_of(*[(WORDS_50, (f"H{n // 2}",)) for n in range(6)])
    assert ranges(group_chunks(passages, ChunkingProfile("fixed", 180))) == [(0, 2), (3, 5)]


def test_sentence_keeps_headings_apart_and_evens_out_a_large_section() -> None:
    passages = passages_of(*[(WORDS_50, ("Big",))] * 4, ("Small.", ("Other",)))
    assert ranges(group_chunks(passages, ChunkingProfile("sentence", 180))) == [(0, 1), (2, 3), (4, 4)]


def test_semantic_breaks_where_the_subject_changes() -> None:
    passages = passages_of(*[(WORDS_50, ())] * 6)
    vectors = np.array([[1, 0], [1, 0.1], [1, 0], [0, 1], [0.1, 1], [0, 1]], dtype=np.float32)
    assert ranges(group_chunks(passages, ChunkingProfile("semantic", 1200), vectors)) == [(0, 2), (3, 5)]


@pytest.mark.parametrize("vectors", [None, np.zeros((2, 4), np.float32), np.zeros(3, np.float32)])
def test_semantic_without_a_vector_for_each_passage_is_refused(vectors: np.ndarray | None) -> None:
    with pytest.raises(ValueError, match="one vector for each"):
        group_chunks(passages_of(*[("Text.", ())] * 3), ChunkingProfile("semantic"), vectors)


def test_no_passages_make_no_chunks() -> None:
    assert group_chunks([], ChunkingProfile()) == []


def test_source_gaps_decide_what_stands_between_passages() -> None:
    rows = passages_of(("a | b", ()), ("c | d", ()), gap=1)
    assert group_chunks(rows, ChunkingProfile())[0].text == "a | b\nc | d"
    chinese = passages_of(("今天很好。", ()), ("明天也好。", ()), gap=0)
    assert group_chunks(chinese, ChunkingProfile())[0].text == "今天很好。明天也好。"


_TEXTS = st.text(alphabet="ab .。中é1|\n", min_size=1, max_size=200).filter(lambda text: text.strip() != "")
_PATHS = st.lists(st.sampled_from(["A", "B", "C"]), max_size=3).map(tuple)


@settings(deadline=None, max_examples=200)
@given(
    items=st.lists(st.tuples(_TEXTS, _PATHS), min_size=1, max_size=40),
    gap=st.integers(0, 3),
    strategy=st.sampled_from(STRATEGIES),
    limit=st.integers(20, 400),
    seed=st.integers(0, 5),
)
def test_every_strategy_covers_each_passage_once_within_the_limit(
    items: list[tuple[str, tuple[str, ...]]], gap: int, strategy: ChunkingStrategy, limit: int, seed: int
) -> None:
    passages = passages_of(*items, gap=gap)
    vectors = np.random.default_rng(seed).normal(size=(len(passages), 4)).astype(np.float32)
    chunks = group_chunks(passages, ChunkingProfile(strategy, limit), vectors)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    assert chunks[0].first_passage == 0
    assert chunks[-1].last_passage == len(passages) - 1
    for before, after in pairwise(chunks):
        assert after.first_passage == before.last_passage + 1
    for chunk in chunks:
        assert chunk.first_passage <= chunk.last_passage
        assert chunk.tokens == count_tokens(chunk.text)
        assert chunk.tokens <= limit or chunk.first_passage == chunk.last_passage
        for passage in passages[chunk.first_passage : chunk.last_passage + 1]:
            assert passage.text in chunk.text
