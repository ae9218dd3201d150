"""Benchmarks and evaluation; nothing of the product imports this."""
