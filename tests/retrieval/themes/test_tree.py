"""A map's themes as levels over numbered leaves."""

from uuid import UUID

from app.retrieval.themes.tree import ThemeNode, ThemeTree


def node(number: int, level: int, last_level: int, first: int, last: int, parent: int | None = None) -> ThemeNode:
    parts = dict.fromkeys(("size", "distinctiveness", "coverage", "entropy", "density", "importance"), 0.5)
    above = None if parent is None else UUID(int=parent)
    return ThemeNode(UUID(int=number), level, last_level, number, above, first, last, **parts)


# One theme of two leaves, of which the second was split again, and one that was never split.
TREE = ThemeTree(
    (node(1, 0, 0, 0, 2), node(2, 1, 2, 0, 0, 1), node(3, 1, 1, 1, 2, 1), node(4, 2, 2, 1, 1, 3), node(5, 2, 2, 2, 2, 3),
     node(6, 0, 2, 3, 3))
)  # fmt: skip


def names(nodes: list[ThemeNode]) -> list[int]:
    return [found.id.int for found in nodes]


def test_each_level_is_a_partition_of_the_leaves() -> None:
    assert [names(TREE.on(level)) for level in range(3)] == [[1, 6], [2, 3, 6], [2, 4, 5, 6]]
    assert [level.themes for level in TREE.levels] == [2, 3, 4]
    assert {leaf.int: owner.int for leaf, owner in TREE.owners(TREE.on(1)).items()} == {2: 2, 4: 3, 5: 3, 6: 6}


def test_leaves_and_children_of_a_theme() -> None:
    assert [leaf.int for leaf in TREE.leaves(TREE.by_id[UUID(int=1)])] == [2, 4, 5]
    assert names(TREE.children(TREE.by_id[UUID(int=3)])) == [4, 5]
    assert TREE.children(TREE.by_id[UUID(int=6)]) == []


def test_leaves_of_themes_that_were_left_out_have_no_owner() -> None:
    assert {leaf.int for leaf in TREE.owners([TREE.by_id[UUID(int=3)]])} == {4, 5}
