"""What is committed names no machine and no package index, and the example settings are complete."""

import re
import subprocess
from pathlib import Path

from app.settings import Settings
from tests.architecture.sources import ROOT

INDEX_HOSTS = re.compile(r"py" r"pi\.org|python" r"hosted\.org|npm" r"js\.(com|org)|/sim" r"ple/")
THIS_MACHINE = re.compile(r"/wo" r"rk/|/ro" r"ot/")


def committed_files() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def test_no_file_names_a_package_index_or_this_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in committed_files()
        for match in [INDEX_HOSTS.search(text_of(path)) or THIS_MACHINE.search(text_of(path))]
        if match
    ]
    assert found == []


def test_the_lock_holds_hashes_for_every_package() -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text())
    bare = [entry.split()[0] for entry in entries if "==" in entry.split("\n")[0] and "--hash=sha256:" not in entry]
    assert bare == []


def test_the_example_environment_names_every_setting_and_nothing_else() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    named = {line.removeprefix("#").strip().split("=", 1)[0] for line in lines if re.match(r"#?\s*TRELLIS_\w+=", line)}
    assert named == {f"TRELLIS_{name.upper()}" for name in Settings.model_fields}


def test_the_example_environment_shows_the_defaults() -> None:
    pairs = dict(re.findall(r"(?m)^#(TRELLIS_\w+)=(.*)$", (ROOT / ".env.example").read_text()))
    wrong = {
        name: value
        for name, value in pairs.items()
        if (default := Settings.model_fields[name.removeprefix("TRELLIS_").lower()].default) is not None
        and str(default) != value
    }
    assert wrong == {}
