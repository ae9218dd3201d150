"""What model calls have cost, and what of its plan a tenant has used."""
