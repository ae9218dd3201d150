"""Every example of docs/api.md works as shown: run in order, in one shell, against real processes."""

import asyncio
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tests.docs.pages import examples, pattern
from tests.live import LiveStack

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("curl") is None, reason="the examples use curl"),
]
MARK = "=== the example at line "
# Files that the examples write stay out of the repository, and the demo's documents are where they expect them.
SHOWN_FOLDERS = ("demo",)
PATIENCE_SECONDS = 280


async def run(script: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", script, cwd=folder, env=environment, start_new_session=True,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def test_the_examples_run_and_show_what_the_page_shows(live_stack: LiveStack, tmp_path: Path) -> None:
    found = examples("api.md")
    assert len(found) > 15
    for name in SHOWN_FOLDERS:
        (tmp_path / name).symlink_to(ROOT / name)
    script = "\n".join(["set -euo pipefail", *(f"printf '\\n{MARK}{each.line}\\n'\n{each.command}" for each in found)])
    environment = os.environ | {"TRELLIS_URL": live_stack.api_url, "TRELLIS_KEY": await live_stack.new_key()}

    status, output = await run(script, tmp_path, environment)

    assert status == 0, output
    said = dict(re.findall(rf"(?ms)^{MARK}(\d+)\n(.*?)(?=^{MARK}|\Z)", output))
    for each in found:
        for line in each.shown:
            assert re.search(pattern(line), said[str(each.line)]), f"line {each.line}: {line!r} not in\n{output}"
