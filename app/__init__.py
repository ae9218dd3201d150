"""Trellis: documents in, cited context for language models out."""
