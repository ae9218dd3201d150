"""How many threads a process has that multiplies matrices."""

import subprocess
import sys

COUNT = """
import os
import app.providers.offline.embeddings
import numpy
square = numpy.ones((500, 500), dtype=numpy.float32)
square @ square
print(len(os.listdir("/proc/self/task")))
"""


def test_a_matrix_is_multiplied_by_one_thread() -> None:
    counted = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert counted.stdout.strip() == "1"
