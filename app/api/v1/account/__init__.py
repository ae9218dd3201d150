"""Who the caller is, and what there is to choose from."""
