"""Runs the migrations from within a process; what they do stands in `migrations/`."""

from pathlib import Path

from alembic import command
from alembic.config import Config

ROOT = Path(__file__).resolve().parents[2]


def alembic_config(owner_url: str) -> Config:
    """Alembic's configuration for the database of `owner_url`, wherever the process was started."""
    config = Config(ROOT / "alembic.ini")
    config.set_main_option("script_location", str(ROOT / "migrations"))
    config.attributes["url"] = owner_url
    return config


def upgrade_schema(owner_url: str, revision: str = "head") -> None:
    """Bring the schema to `revision`; migrations of other processes on the same database wait for each other."""
    command.upgrade(alembic_config(owner_url), revision)
