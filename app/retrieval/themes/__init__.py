"""Themes of a corpus: communities of its concept graph, and what is answered from them."""
