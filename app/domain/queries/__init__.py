"""Questions to a workspace: which engine answers, what it costs, and the evidence as a context for a language model."""
