"""Tasks by topic. Each turns its message into a job and hands it to the outermost handler."""
