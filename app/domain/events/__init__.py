"""What became of documents, told in order: as a stream, and to webhooks."""
