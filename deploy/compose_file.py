"""docker-compose.yml as Compose understands it: variables filled in, anchors merged, and refused where it says anything
that this reader does not carry out, so that what is started is what the file says.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).resolve().parents[1] / "docker-compose.yml"
KNOWN = {
    "build", "cap_drop", "command", "depends_on", "deploy", "environment", "healthcheck", "image", "logging", "ports",
    "profiles", "read_only", "restart", "security_opt", "shm_size", "stop_grace_period", "tmpfs", "volumes",
}  # fmt: skip
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\})")
UNITS = {"s": 1, "m": 60, "h": 3600}


class ComposeRefused(ValueError):
    """The file cannot be started as it is; the message says what is wrong."""


@dataclass(frozen=True)
class Healthcheck:
    """A command, and how patient to be with it; times in seconds."""

    command: tuple[str, ...]
    interval: float
    timeout: float
    retries: int
    start_period: float


@dataclass(frozen=True)
class Service:
    """One service. `content` is its mapping in the file, with variables filled in."""

    name: str
    content: Mapping[str, Any]
    environment: Mapping[str, str]
    depends_on: Mapping[str, str]
    healthcheck: Healthcheck | None
    profiles: frozenset[str] = field(default_factory=frozenset)

    @property
    def image(self) -> str:
        return str(self.content["image"])


def read_services(
    environment: Mapping[str, str], profiles: frozenset[str] = frozenset(), file: Path = FILE
) -> list[Service]:
    """The services that Compose would start with these profiles, each after those that it depends on.

    Raises ComposeRefused where a variable without a default is not set, or where the file says something unknown.
    """
    filled = _fill(yaml.safe_load(file.read_text()), environment)
    services = [_service(name, content, environment) for name, content in filled["services"].items()]
    wanted = [service for service in services if not service.profiles or service.profiles & profiles]
    return _in_order(wanted)


def _fill(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(item, environment) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, environment) for item in value]
    return VARIABLE.sub(lambda found: _variable(found, environment), value) if isinstance(value, str) else value


def _variable(found: "re.Match[str]", environment: Mapping[str, str]) -> str:
    if found["dollar"]:
        return "$"
    given = environment.get(found["name"], "")
    if given or found["kind"] is None:
        return given
    if found["kind"] == "?":
        raise ComposeRefused(f"{found['name']} is not set: {found['rest']}")
    return found["rest"] or ""


def _service(name: str, content: Mapping[str, Any], environment: Mapping[str, str]) -> Service:
    if unknown := content.keys() - KNOWN:
        raise ComposeRefused(f"service {name} has {', '.join(sorted(unknown))}, which is not carried out here")
    depends_on = {other: str(how["condition"]) for other, how in content.get("depends_on", {}).items()}
    if unknown := set(depends_on.values()) - CONDITIONS:
        raise ComposeRefused(f"service {name} waits for {', '.join(sorted(unknown))}")
    # A variable without a value is taken from the environment, or left out.
    given = {key: environment.get(key) if value is None else str(value) for key, value in content["environment"].items()} \
        if "environment" in content else {}  # fmt: skip
    return Service(
        name,
        content,
        {key: value for key, value in given.items() if value is not None},
        depends_on,
        _healthcheck(content.get("healthcheck")),
        frozenset(content.get("profiles", ())),
    )


def _healthcheck(content: Mapping[str, Any] | None) -> Healthcheck | None:
    if content is None or content.get("disable"):
        return None
    kind, *command = content["test"]
    if kind not in ("CMD", "CMD-SHELL"):
        raise ComposeRefused(f"a health check begins with {kind}")
    return Healthcheck(
        tuple(command) if kind == "CMD" else ("sh", "-c", *command),
        seconds(content["interval"]),
        seconds(content["timeout"]),
        int(content["retries"]),
        seconds(content.get("start_period", "0s")),
    )


def seconds(text: str) -> float:
    """`90s`, `1m30s` as seconds."""
    parts = re.findall(r"(\d+)([smh])", text)
    if "".join(f"{number}{unit}" for number, unit in parts) != text:
        raise ComposeRefused(f"{text} is not a length of time")
    return float(sum(int(number) * UNITS[unit] for number, unit in parts))


def _in_order(services: list[Service]) -> list[Service]:
    ordered: list[Service] = []
    while len(ordered) < len(services):
        done = {service.name for service in ordered}
        ready = [item for item in services if item.name not in done and item.depends_on.keys() <= done]
        if not ready:
            raise ComposeRefused("services depend on each other, or on one that is not started")
        ordered += ready
    return ordered
