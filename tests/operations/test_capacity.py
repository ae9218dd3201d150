"""The command that docs/capacity.md reasons from, as an operator runs it on a filled database."""

import re
import subprocess
import sys

from tests.architecture.sources import ROOT
from tests.cluster import Cluster
from tests.operations.installation import Filled
from tests.operations.test_filled_schema import as_administrator


def capacity(url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.capacity", "--url", url, "--tenants", "10", "--passages", "1000"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_the_command_tells_what_a_passage_takes(cluster: Cluster, filled: Filled) -> None:
    answer = capacity(as_administrator(cluster, filled.urls))
    assert answer.returncode == 0, answer.stderr
    found = re.match(r"([\d,]+) passages of (\d+) bytes of text\n", answer.stdout)
    assert found is not None, answer.stdout
    assert int(found[1].replace(",", "")) > 0
    assert int(found[2]) > 0
    names = re.findall(r"(?m)^\| ([\w ]+) \| [\d,]+ \|", answer.stdout)
    assert {"passages", "full text", "concepts", "vectors", "graph", "all"} <= set(names)


def test_a_role_that_may_not_see_the_statistics_is_refused(filled: Filled) -> None:
    answer = capacity(filled.urls.owner)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "come as the administrator" in answer.stderr
