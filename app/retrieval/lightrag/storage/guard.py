"""Keeps LightRAG's own code away from the database inside a unit, so that nothing reads or writes past what it collects."""

from typing import Any

from app.retrieval.lightrag.storage.context import NotInUnit, active_unit


class GuardedDatabase:
    """Comes before one of LightRAG's storage classes and takes the place of its `db` field."""

    workspace: str
    _database: Any = None

    @property
    def db(self) -> Any:
        """The engine's database. Raises `NotInUnit` inside a unit: a method that is not overridden must not get through."""
        if active_unit(self.workspace) is not None:
            raise NotInUnit(f"{type(self).__name__} has no transactional form of this call")
        return self._database

    @db.setter
    def db(self, database: Any) -> None:
        self._database = database


def refuse_in_unit(workspace: str, call: str) -> None:
    """For calls whose stock form would swallow the guard's error. Raises `NotInUnit` inside a unit."""
    if active_unit(workspace) is not None:
        raise NotInUnit(f"{call} has no transactional form")
