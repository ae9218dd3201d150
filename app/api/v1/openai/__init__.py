"""OpenAI's chat interface over workspaces."""
