"""The audit log, for its readers."""
