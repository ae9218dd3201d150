"""The query behind the figures of the installation."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from app.db.session import SystemSession

FIGURES = text("SELECT subject, label, state, items, oldest_seconds FROM installation_figures()")


class FiguresRepository:
    """Numbers over all tenants."""

    def __init__(self, session: SystemSession) -> None:
        self._session = session

    async def list(self) -> Sequence[Any]:
        """Rows (subject, label, state, items, oldest_seconds); what there is none of has no row."""
        return (await self._session.execute(FIGURES)).all()
