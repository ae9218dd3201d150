"""Centrality in small graphs, beside the values of a library that computes them exactly."""

import networkx
import pytest

from app.retrieval.lazy.centrality import Edge, betweenness, pagerank

STAR: list[Edge] = [(0, leaf, 1.0) for leaf in range(1, 5)]
CHAIN: list[Edge] = [(0, 1, 1.0), (1, 2, 2.0), (2, 3, 1.0), (3, 4, 5.0), (1, 3, 1.0)]


def graph(size: int, edges: list[Edge]) -> networkx.Graph:
    found = networkx.Graph()
    found.add_nodes_from(range(size))
    found.add_weighted_edges_from(edges)
    return found


@pytest.mark.parametrize(("size", "edges"), [(5, STAR), (5, CHAIN), (7, CHAIN), (3, [])])
def test_betweenness_from_all_nodes_is_exact(size: int, edges: list[Edge]) -> None:
    expected = networkx.betweenness_centrality(graph(size, edges))
    assert betweenness(size, edges) == pytest.approx([expected[node] for node in range(size)])


def test_betweenness_from_a_sample_finds_the_middle() -> None:
    edges: list[Edge] = [(0, leaf, 1.0) for leaf in range(1, 60)]
    sampled = betweenness(60, edges, sources=6)
    assert max(range(60), key=sampled.__getitem__) == 0
    assert sampled[0] == pytest.approx(1.0, abs=0.2)


def test_pagerank_is_a_distribution_that_edges_carry() -> None:
    ranks = pagerank(5, CHAIN)
    assert sum(ranks) == pytest.approx(1.0)
    # At rest: what a node has is what flows in.
    strength = [sum(w for a, b, w in CHAIN if node in (a, b)) for node in range(5)]
    for node in range(5):
        arriving = sum(
            ranks[b if a == node else a] * w / strength[b if a == node else a] for a, b, w in CHAIN if node in (a, b)
        )
        assert ranks[node] == pytest.approx(0.15 / 5 + 0.85 * arriving, abs=1e-6)
    assert pagerank(3, []) == pytest.approx([1 / 3] * 3)
    assert pagerank(0, []) == []


def test_nothing_lies_between_two() -> None:
    assert betweenness(2, [(0, 1, 1.0)]) == [0.0, 0.0]
