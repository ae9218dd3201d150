"""Communities, places, importance and labels, from concepts alone: pure, and the same whatever the order of uploads."""

from collections.abc import Sequence
from uuid import UUID, uuid4

import numpy as np
import pytest

from app.retrieval.lazy.selection import select_mentions
from app.retrieval.themes.building import DraftConcept, DraftMap, build
from app.retrieval.themes.communities import grow
from app.retrieval.themes.graph import Mentions, find_edges, read_vocabulary
from app.retrieval.themes.importance import weigh
from app.retrieval.themes.inheritance import Ancestry, Forebear, inherit_ids
from app.retrieval.themes.labels import Unnamed, label_all, label_terms
from app.retrieval.themes.parameters import ThemeParameters
from app.text.concepts.words import sentences
from tests.retrieval.themes.conftest import TOPICS

TEXTS = [text for topic in TOPICS for text in topic]


def mentions_of(texts: Sequence[str], title: str = "") -> Mentions:
    found = [select_mentions(title, (), sentences(text)) for text in texts]
    places = np.arange(len(texts))
    return Mentions(
        places,
        places.astype(np.int32),
        places.astype(np.int32),
        np.cumsum([0, *(len(mentions) for mentions in found)]),
        np.array([mention.key for mentions in found for mention in mentions], dtype=np.int64),
        np.array([mention.flags for mentions in found for mention in mentions], dtype=np.int64),
    )


def groups(draft: DraftMap, level: int) -> set[frozenset[int]]:
    return {frozenset(theme.passages.tolist()) for theme in draft.themes if theme.level <= level <= theme.last_level}


def test_topics_are_told_apart_and_every_level_is_a_partition() -> None:
    draft = build(mentions_of(TEXTS), ThemeParameters())
    assert groups(draft, 0) == {frozenset(range(start, start + 5)) for start in (0, 5, 10)}
    for level in range(draft.levels):
        placed = [passage for group in groups(draft, level) for passage in group]
        assert sorted(placed) == list(range(15))
    leaves = [theme for theme in draft.themes if theme.is_leaf]
    assert sorted(theme.first_leaf for theme in leaves) == list(range(draft.leaves))
    for theme in draft.themes:
        if theme.parent is not None:
            parent = draft.themes[theme.parent]
            assert parent.first_leaf <= theme.first_leaf <= theme.last_leaf <= parent.last_leaf
            assert parent.last_level < theme.level


def test_the_order_of_passages_does_not_matter() -> None:
    order = list(reversed(range(len(TEXTS))))
    there = build(mentions_of(TEXTS), ThemeParameters())
    back = build(mentions_of([TEXTS[place] for place in order]), ThemeParameters())
    turned = {frozenset(order[passage] for passage in group) for group in groups(back, 0)}
    assert turned == groups(there, 0)


def test_numbers_and_concepts_of_too_many_passages_tie_nothing_together() -> None:
    texts = [f"Alpha{number} met Beta{number} in 2015." for number in range(30)]
    vocabulary = read_vocabulary(mentions_of(texts), ThemeParameters())
    assert not len(find_edges(vocabulary, 30, ThemeParameters()).weights)
    everywhere = [f"Common Ground and Gamma{number // 2}." for number in range(30)]
    vocabulary = read_vocabulary(mentions_of(everywhere), ThemeParameters())
    assert 30 in vocabulary.df
    assert not vocabulary.in_window[vocabulary.df == 30].any()


def test_nothing_gives_an_empty_map() -> None:
    draft = build(mentions_of([]), ThemeParameters())
    assert (draft.themes, draft.levels, draft.leaves) == ([], 0, 0)


def test_a_tree_leaves_out_levels_and_communities_that_say_nothing_new() -> None:
    tree = grow([(0, 0, 0), (0, 0, 1), (0, 1), (1, 2)])
    shown = [(node.level, node.last_level, node.parent, node.first_leaf, node.last_leaf) for node in tree.nodes]
    assert shown == [
        (0, 0, None, 0, 2),
        (1, 1, 0, 0, 1),
        (2, 2, 1, 0, 0),
        (2, 2, 1, 1, 1),
        (1, 2, 0, 2, 2),
        (0, 2, None, 3, 3),
    ]
    assert (tree.levels, tree.base_level) == (3, 1)
    flat = grow([(0, 0), (1, 1)])
    assert (flat.levels, flat.base_level, len(flat.nodes)) == (1, 0, 2)


def test_every_part_of_importance_is_between_0_and_1() -> None:
    for theme in build(mentions_of(TEXTS), ThemeParameters()).themes:
        found = theme.importance
        parts = (found.size, found.distinctiveness, found.coverage, found.entropy, found.density, found.importance)
        assert all(0 <= part <= 1 for part in parts)


def test_importance_is_the_product_that_is_documented_or_the_weighted_mean() -> None:
    found = weigh(
        passages=3, of_passages=3, own_mentions=5, touched_mentions=10, different=8, own_df=np.array([2, 2]),
        parameters=ThemeParameters(formula="weighted"),
    )  # fmt: skip
    assert (found.size, found.distinctiveness, found.coverage, found.entropy) == (1, 0.5, 0.25, 1)
    assert found.density == pytest.approx(0.625)
    assert found.importance == pytest.approx(0.3 + 0.4 * 0.5 + 0.3 * 0.625)
    assert found.product == pytest.approx(np.log(4) * 0.5)
    product = weigh(
        passages=3, of_passages=3, own_mentions=5, touched_mentions=10, different=8, own_df=np.array([2, 2]),
        parameters=ThemeParameters(),
    )  # fmt: skip
    assert product.importance == pytest.approx(0.5)


def concept(key: int, *, df: int = 5, kind: int = 0, titles: int = 0) -> DraftConcept:
    return DraftConcept(key, kind, df, df, float(np.log1p(df)), titles, 0, None)


def label(surfaces: Sequence[str], *concepts: DraftConcept) -> list[str]:
    theme = Unnamed(5, None, 1.0, list(enumerate(concepts)))
    return [term.surface for term in label_terms(theme, dict(enumerate(surfaces)))]


@pytest.mark.parametrize(
    ("surfaces", "shown"),
    [
        (["Tesla", "Nikola Tesla", "Edison"], ["Edison", "Nikola Tesla"]),
        (["Варшава", "Варшавы", "Висла"], ["Варшава", "Висла"]),
        (["免疫", "免疫系统", "淋巴"], ["免疫系统", "淋巴"]),
        (["2015", "A1", "the", "Rhine"], ["Rhine"]),
        (["January", "März 1900", "вторник", "十二月", "May Field"], ["May Field"]),
    ],
)
def test_a_label_has_no_parts_forms_numbers_or_stop_words(surfaces: list[str], shown: list[str]) -> None:
    found = label(surfaces, *(concept(key) for key in range(len(surfaces))))
    assert sorted(found) == sorted(shown)


def test_names_come_before_words_and_titles_before_names() -> None:
    surfaces = ["returned", "Rhine", "The Great River"]
    assert label(surfaces, concept(0, kind=2), concept(1), concept(2, titles=5)) == [
        "The Great River",
        "Rhine",
        "returned",
    ]


def test_siblings_do_not_begin_with_the_same_term() -> None:
    both = [Unnamed(5, None, weight, [(0, concept(0)), (1, concept(1, df=4))]) for weight in (0.9, 0.5)]
    first, second = label_all(both, {0: "Rhine", 1: "Meuse"})
    assert (first[0].surface, second[0].surface) == ("Rhine", "Meuse")


def test_a_theme_that_is_mostly_the_same_keeps_its_id() -> None:
    ids = [uuid4(), uuid4()]
    before = Ancestry([Forebear(ids[0], 0, 0, 0), Forebear(ids[1], 0, 1, 1)], {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1})
    passages = np.array([1, 2, 3, 4, 5, 6, 7, 8])
    found = inherit_ids([(0, 0, 0), (0, 1, 1), (0, 2, 2)], passages, np.array([1, 1, 1, 0, 2, 0, 0, 1]), before)
    assert found[1] == ids[0]
    assert found[0] == ids[1]
    assert isinstance(found[2], UUID)
    assert found[2] not in ids
