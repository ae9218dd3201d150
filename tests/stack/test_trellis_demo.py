"""`trellis demo` as a user runs it: every step holds and nothing is left behind, or it fails and says why."""

import os
import subprocess
import sys

import pytest

from app.devstack.folders import stack_home
from app.retrieval.contract import MODES
from tests.architecture.sources import ROOT

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]


def run_demo(**environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "app.cli.main", "demo"],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


def folders_of_demos() -> set[str]:
    folder = stack_home() / "demo"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_the_demo_walks_the_whole_road_and_cleans_up() -> None:
    before = folders_of_demos()
    demo = run_demo()
    assert demo.returncode == 0, demo.stdout[-3000:] + demo.stderr[-3000:]
    assert "The demo is done" in demo.stdout
    assert [mode for mode in MODES if f"\n  {mode}  " not in demo.stdout] == []
    assert folders_of_demos() <= before


def test_a_demo_that_cannot_work_fails_with_the_reason() -> None:
    demo = run_demo(WORKSPACE="somebody-elses")
    assert demo.returncode == 1
    assert "The demo failed" in demo.stdout
    assert "environment variable WORKSPACE is set" in demo.stderr
    assert "trellis:" in demo.stderr
