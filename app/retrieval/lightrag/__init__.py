"""The graph engine: LightRAG on Postgres. The only package that imports `lightrag`."""

import os

# LightRAG imports pypinyin to sort the lists of its own server, which nothing here shows. The table of phrases is a fifth of
# a second and of no use.
os.environ.setdefault("PYPINYIN_NO_PHRASES", "true")
