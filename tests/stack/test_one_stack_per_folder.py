"""A data folder belongs to one running stack; a killed one does not keep it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.devstack.folders import FolderRefused
from app.devstack.lock import exclusive
from app.devstack.processes import MARK, start_child, stop_leftovers
from app.devstack.stack import empty_data_folder
from tests.architecture.sources import ROOT

HOLD = """
import sys, time
from pathlib import Path
from app.devstack.lock import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def hold_in_another_process(folder: Path) -> "subprocess.Popen[bytes]":
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    return holder


def test_a_second_stack_on_the_same_folder_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    holder = hold_in_another_process(tmp_path)
    try:
        with pytest.raises(FolderRefused, match=str(holder.pid)), exclusive(tmp_path):
            pass
    finally:
        holder.kill()
        holder.communicate()


def test_the_command_says_so_in_one_line_and_fails(tmp_path: Path) -> None:
    with exclusive(tmp_path):
        answer = subprocess.run(
            [sys.executable, "-m", "app.cli.main", "dev", "--data-dir", str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    assert answer.returncode == 1
    assert "is in use by another running stack" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_killed_holder_keeps_nothing(tmp_path: Path) -> None:
    holder = hold_in_another_process(tmp_path)
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    with exclusive(tmp_path):
        assert (tmp_path / "holder").read_text() == str(os.getpid())


def test_grandchildren_of_a_killed_stack_are_ended_and_strangers_are_not(tmp_path: Path) -> None:
    folder, other = tmp_path / "ours", tmp_path / "others"
    command = ["/bin/sh", "-c", "sleep 60 & echo started; wait"]
    children = []
    for place in (folder, other):
        place.mkdir()
        environment = {"PATH": os.defpath, MARK: str(place)}
        children.append(start_child("shell", command, log=place / "log", environment=environment, folder=place))
    ours, theirs = children
    while "started" not in ours.log.read_text():
        time.sleep(0.01)
    try:
        assert stop_leftovers(folder) == 2
        assert ours.ended()
        assert not theirs.ended()
    finally:
        stop_leftovers(other)
        theirs.stop()


def test_emptying_a_data_folder_leaves_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "api-key").write_text("x")
    (tmp_path / "holiday.jpg").write_text("x")
    empty_data_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]
