"""API keys, as the admins of a tenant manage them."""
