"""One module a format, each with `parse(job, out)`; only the child process imports them."""
