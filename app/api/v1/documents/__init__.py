"""Documents, their originals and passages over HTTP."""
