"""Events of a workspace over HTTP: the stream, and webhooks."""
