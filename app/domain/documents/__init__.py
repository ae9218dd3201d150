"""Documents as users see them: upload, status, original, metadata, retry and deletion."""
