"""Requests that are sent again with the same key have one effect and one answer."""
