"""Folders of runs that end with their process: the demo's and the tests'. Those of killed runs are cleared away."""

import os
import shutil
from pathlib import Path

import psutil

from app.devstack.folders import create_folder, stack_home
from app.devstack.processes import stop_leftovers


def open_run_folder(kind: str) -> Path:
    """Make a folder for this process, after ending and removing what killed runs of this kind left."""
    runs = stack_home() / kind
    create_folder(runs)
    for folder in runs.iterdir():
        if not _owner_is_alive(folder):
            close_run_folder(folder)
    folder = runs / f"{os.getpid()}-{int(psutil.Process().create_time())}"
    create_folder(folder)
    return folder


def close_run_folder(folder: Path) -> None:
    """End every process that works for this folder and remove it."""
    stop_leftovers(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _owner_is_alive(folder: Path) -> bool:
    process_id, _, created = folder.name.partition("-")
    try:
        return int(psutil.Process(int(process_id)).create_time()) == int(created)
    except (psutil.NoSuchProcess, ValueError):
        return False
