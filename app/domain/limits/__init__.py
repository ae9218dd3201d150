"""What tenants may use: plans, rates, quotas and budgets, and whose turn it is."""
