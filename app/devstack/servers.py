"""Postgres and Redis as one unit: start, stop, their generated passwords, and the ports they had last time."""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from app.db.provision import RolePasswords
from app.devstack.folders import create_folder
from app.devstack.postgres import EmbeddedPostgres
from app.devstack.processes import Child
from app.devstack.redis_server import EmbeddedRedis


@dataclass(frozen=True)
class Secrets:
    """Passwords and keys of one data folder, generated once."""

    superuser: str
    owner: str
    app: str
    engine: str
    redis: str
    secret_key: str

    @property
    def roles(self) -> RolePasswords:
        return RolePasswords(owner=self.owner, app=self.app, engine=self.engine)


@dataclass(frozen=True)
class Ports:
    """Where the servers listened last; kept so that URLs stay the same from run to run where they can."""

    postgres: int = 0
    redis: int = 0


class Servers:
    """The embedded servers of one data folder; Postgres from the wheel, or from a folder of `programs`."""

    def __init__(
        self,
        folder: Path,
        *,
        for_tests: bool = False,
        programs: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        create_folder(folder)
        self.folder = folder
        self.secrets = load_secrets(folder)
        self.postgres = EmbeddedPostgres(
            folder, password=self.secrets.superuser, for_tests=for_tests, programs=programs, settings=settings
        )
        self.redis = EmbeddedRedis(folder, password=self.secrets.redis)
        self.children: list[Child] = []

    def start(self) -> None:
        """Start both; if the second fails the first is stopped again."""
        last = self.load_ports()
        try:
            self.children.append(self.postgres.start(last.postgres))
            self.children.append(self.redis.start(last.redis))
        except BaseException:
            self.stop()
            raise
        (self.folder / "ports.json").write_text(json.dumps(asdict(Ports(self.postgres.port, self.redis.port))))

    def check(self) -> None:
        """Raise ProcessFailed if one of them ended by itself."""
        for child in self.children:
            if child.ended():
                raise child.failure()

    def stop(self) -> None:
        while self.children:
            self.children.pop().stop()

    def load_ports(self) -> Ports:
        path = self.folder / "ports.json"
        return Ports(**json.loads(path.read_text())) if path.exists() else Ports()


def load_secrets(folder: Path) -> Secrets:
    """Read the secrets of a data folder, or make them on first use; the file is private to its owner."""
    path = folder / "secrets.json"
    if path.exists():
        return Secrets(**json.loads(path.read_text()))
    made = Secrets(*(secrets.token_urlsafe(24) for _ in range(6)))
    draft = path.with_suffix(".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(asdict(made), file)
    draft.rename(path)
    return made
