"""Trellis: documents in, cited context for language models out."""

import os

# Read by numpy when it is imported. The offline embeddings multiply small matrices, for which a second thread saves little
# and waits by spinning: beside other processes an embedding took ten times its processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
