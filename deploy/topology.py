"""Starts what docker-compose.yml describes as containers of podman: order, health checks, limits and volumes as the file says."""

import os
import time
from collections.abc import Callable, Mapping, Sequence

from deploy.compose_file import FILE, Service, read_services, seconds
from deploy.engine import Engine, limits

START_SECONDS = 300
POLL_SECONDS = 0.5
# Compose names a project's images without a registry; podman keeps those under this one.
LOCAL = "localhost/"

Report = Callable[[str], None]


class TopologyFailed(RuntimeError):
    """A service did not do what the file promises; the message says which, and ends with its last lines."""


class Topology:
    """The services of the file as one project. `environment` fills in the file's variables and holds its secrets."""

    def __init__(
        self, engine: Engine, project: str, environment: Mapping[str, str], report: Report,
        profiles: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.engine = engine
        self.project = project
        self.services = {service.name: service for service in read_services(environment, profiles)}
        self._report = report
        self._started: set[str] = set()

    def up(self, *names: str) -> None:
        """Start these services, or all, each when what it waits for is so, until they are healthy. Raises TopologyFailed."""
        wanted = [service for service in self.services.values() if not names or service.name in names]
        if not self._started:
            self._prepare()
        for service in wanted:
            if service.name not in self._started:
                started = time.monotonic()
                for other, condition in service.depends_on.items():
                    self._wait(other, condition)
                self._start(service)
                self._report(f"{service.name} started after {time.monotonic() - started:.1f} s of waiting")
        for service in wanted:
            if service.healthcheck is not None:
                self._wait(service.name, "service_healthy")

    def _prepare(self) -> None:
        for service in self.services.values():
            if not self.engine.has_image(LOCAL + service.image):
                raise TopologyFailed(f"there is no image {service.image} here: run `make images` first")
        self.engine.call("network", "create", self.project)

    def down(self) -> None:
        """Stop and remove everything of the project, its volumes too."""
        found = self.engine.call("ps", "-a", "--format", "{{.Names}}", "--filter", f"name={self.project}-").stdout
        for name in reversed(found.split()):
            self.engine.call("rm", "-f", "-v", "-t", "5", name, check=False)
        volumes = self.engine.call("volume", "ls", "--format", "{{.Name}}", "--filter", f"name={self.project}_").stdout
        for name in volumes.split():
            self.engine.call("volume", "rm", "-f", name, check=False)
        self.engine.call("network", "rm", "-f", self.project, check=False)

    def run(self, name: str, command: Sequence[str]) -> str:
        """What `docker compose run --rm NAME COMMAND` prints. Raises TopologyFailed."""
        service = self.services[name]
        answer = self.engine.call(
            "run", "--rm", "--name", f"{self.project}-{name}-run-{os.getpid()}",
            *self._options(service), LOCAL + service.image, *command, check=False,
        )  # fmt: skip
        if answer.returncode != 0:
            raise TopologyFailed(f"{' '.join(command)} ended with {answer.returncode}: {answer.stderr[-1500:]}")
        return answer.stdout

    def execute(self, name: str, command: Sequence[str], *, user: str | None = None) -> tuple[int, str]:
        """Exit code and output of a command in a running container."""
        as_user = ["--user", user] if user is not None else []
        answer = self.engine.call("exec", *as_user, self.container(name), *command, check=False)
        return answer.returncode, answer.stdout + answer.stderr

    def volume(self, name: str) -> str:
        return f"{self.project}_{name}"

    def stop(self, name: str) -> tuple[int, float]:
        """Stop a service as an upgrade does; its exit code (137 if it had to be killed) and how long it took."""
        started = time.monotonic()
        self.engine.call("stop", self.container(name))
        return self._exit_code(name), time.monotonic() - started

    def start(self, name: str) -> None:
        """Start a service that was stopped, and wait until it is healthy if it tells."""
        self.engine.call("start", self.container(name))
        self._wait(name, "service_started" if self.services[name].healthcheck is None else "service_healthy")

    def logs(self, name: str, lines: int = 40) -> str:
        answer = self.engine.call("logs", "--tail", str(lines), self.container(name), check=False)
        return answer.stdout + answer.stderr

    def container(self, name: str) -> str:
        return f"{self.project}-{name}-1"

    def _start(self, service: Service) -> None:
        content = service.content
        ports = [part for port in content.get("ports", ()) for part in ("--publish", str(port))]
        self._started.add(service.name)
        self.engine.call(
            "run", "--detach", "--name", self.container(service.name), "--restart", str(content.get("restart", "no")),
            "--network-alias", service.name, *ports, *self._options(service), LOCAL + service.image,
            *(str(part) for part in content.get("command", ())),
        )  # fmt: skip

    def _options(self, service: Service) -> list[str]:
        content = service.content
        caps = content["deploy"]["resources"]["limits"]
        options = ["--network", self.project, "--no-healthcheck", *limits()]
        options += ["--cpus", str(caps["cpus"]), "--memory", str(caps["memory"]), "--pids-limit", str(caps["pids"])]
        options += ["--stop-timeout", f"{seconds(content.get('stop_grace_period', '10s')):.0f}"]
        options += [f"--cap-drop={name}" for name in content.get("cap_drop", ())]
        options += [f"--security-opt={text.split(':')[0]}" for text in content.get("security_opt", ())]
        options += ["--read-only", "--read-only-tmpfs=false"] if content.get("read_only") else []
        options += ["--shm-size", str(content["shm_size"])] if "shm_size" in content else []
        options += [part for place in content.get("tmpfs", ()) for part in ("--tmpfs", str(place))]
        for volume in content.get("volumes", ()):
            options += ["--volume", self._mount(str(volume))]
        for name, value in service.environment.items():
            options += ["--env", f"{name}={value}"]
        return options

    def _mount(self, volume: str) -> str:
        """A named volume of the project, a folder of the repository (`./…`), or a volume that goes with its container."""
        if volume.startswith("./"):
            return str(FILE.parent / volume[2:])
        return f"{self.project}_{volume}" if ":" in volume else volume

    def _wait(self, name: str, condition: str) -> None:
        """Until a started service is as `condition` demands."""
        service, deadline = self.services[name], time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            state = self.engine.call("inspect", "--format", "{{.State.Status}}", self.container(name)).stdout.strip()
            if state == "exited":
                if condition == "service_completed_successfully" and self._exit_code(name) == 0:
                    return
                raise TopologyFailed(f"{name} ended with {self._exit_code(name)}:\n{self.logs(name)}")
            if condition == "service_started" or (condition == "service_healthy" and self._is_healthy(service)):
                return
            time.sleep(POLL_SECONDS)
        raise TopologyFailed(f"{name} was not as `{condition}` demands in {START_SECONDS} s:\n{self.logs(name)}")

    def _is_healthy(self, service: Service) -> bool:
        check = service.healthcheck
        if check is None:
            raise TopologyFailed(f"{service.name} has no health check to wait for")
        return self.execute(service.name, ["timeout", f"{check.timeout:.0f}", *check.command])[0] == 0

    def _exit_code(self, name: str) -> int:
        return int(self.engine.call("inspect", "--format", "{{.State.ExitCode}}", self.container(name)).stdout)
