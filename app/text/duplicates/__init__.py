"""Names that may mean one thing: comparable forms, how alike two names are and why, and candidates among many."""
