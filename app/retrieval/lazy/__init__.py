"""The LLM-free engine: an index of concepts that passages share, and the search that walks it."""
