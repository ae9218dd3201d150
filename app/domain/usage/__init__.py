"""What model calls have cost, by tenant and workspace."""
