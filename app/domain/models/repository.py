"""Queries for model profiles. They belong to no tenant; the runtime roles may only read them."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select

from app.db.models import ModelProfile
from app.db.session import SystemSession


class ModelProfileRepository:
    def __init__(self, session: SystemSession) -> None:
        self._session = session

    async def add(self, row: ModelProfile) -> None:
        self._session.add(row)
        await self._session.flush()  # the unique constraints speak here, where the caller can answer

    async def find(self, profile_id: UUID) -> ModelProfile | None:
        return await self._session.get(ModelProfile, profile_id)

    async def find_by_name(self, name: str) -> ModelProfile | None:
        return await self._session.scalar(select(ModelProfile).where(ModelProfile.name == name))

    async def list(self) -> Sequence[ModelProfile]:
        """All profiles by name."""
        return (await self._session.scalars(select(ModelProfile).order_by(ModelProfile.name))).all()
