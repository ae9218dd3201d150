"""Originals in object storage."""
