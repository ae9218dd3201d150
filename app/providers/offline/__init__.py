"""The offline pair: an extractor by rules and embeddings that ship in wheels. No key, no network, no download."""
