"""Concepts and search terms of a text in any script, found by rules alone: no model, no dictionary table, no state."""
