"""Turns uploaded files into `SourceText`, each in a child process of its own."""
