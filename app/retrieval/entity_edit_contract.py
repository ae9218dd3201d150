"""What domain code and the graph engine say to each other about changing entities and relations by hand."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from app.retrieval.contract import EngineWorkspace, Lease, RelationEvidence, Statement
from app.retrieval.entity_contract import ChangeRecord, EntityAlias, EntityDetail
from app.retrieval.errors import EntityExists, InvalidEntity, RelationExists, RelationNotFound

__all__ = ["EntityExists", "InvalidEntity", "RelationExists", "RelationNotFound"]

# Of an entity: type, description. Of a relation: description, keywords, weight. None takes back what was said before.
Fields = Mapping[str, Any]


class EntityEditor(Protocol):
    """Changes entities and relations by hand; each change is one write with its `record` and `companions`.

    What people say holds whatever documents say, and what they made stays without any document.
    """

    async def create_entity(
        self,
        workspace: EngineWorkspace,
        name: str,
        fields: Fields,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> EntityDetail:
        """Raises `InvalidEntity` or `EntityExists`."""
        ...

    async def edit_entity(
        self,
        workspace: EngineWorkspace,
        name: str,
        fields: Fields,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> EntityDetail:
        """Raises `EntityNotFound`."""
        ...

    async def delete_entity(
        self,
        workspace: EngineWorkspace,
        name: str,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> None:
        """The entity with its relations and all that was said of them. Raises `EntityNotFound`."""
        ...

    async def get_relation(self, workspace: EngineWorkspace, source: str, target: str) -> RelationEvidence:
        """In either direction. Raises `EntityNotFound` or `RelationNotFound`."""
        ...

    async def create_relation(
        self,
        workspace: EngineWorkspace,
        source: str,
        target: str,
        fields: Fields,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> RelationEvidence:
        """Raises `EntityNotFound`, `InvalidEntity` or `RelationExists`."""
        ...

    async def edit_relation(
        self,
        workspace: EngineWorkspace,
        source: str,
        target: str,
        fields: Fields,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> RelationEvidence:
        """Raises `EntityNotFound` or `RelationNotFound`."""
        ...

    async def delete_relation(
        self,
        workspace: EngineWorkspace,
        source: str,
        target: str,
        lease: Lease,
        *,
        record: ChangeRecord,
        companions: Sequence[Statement] = (),
    ) -> None:
        """Raises `EntityNotFound` or `RelationNotFound`."""
        ...

    async def split(
        self,
        workspace: EngineWorkspace,
        name: str,
        parts: Mapping[str, Sequence[tuple[UUID, int]]],
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> tuple[EntityDetail, ...]:
        """Of these chunks (version, ordinal) what the entity's name says is said of the parts' entities from now on.

        Returns those entities. Raises `EntityNotFound`, and `InvalidEntity` for a chunk that does not speak of it.
        """
        ...

    async def add_alias(
        self,
        workspace: EngineWorkspace,
        alias: str,
        target: str,
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> EntityAlias:
        """From now on documents and questions that say `alias` mean `target`. Raises `InvalidAlias` or `AliasTaken`.

        Adding it again changes nothing, and leaves nothing in the history.
        """
        ...

    async def remove_alias(
        self,
        workspace: EngineWorkspace,
        alias: str,
        lease: Lease,
        *,
        record: ChangeRecord | None = None,
        companions: Sequence[Statement] = (),
    ) -> None:
        """From now on the name stands for itself; what it brought to its target stays there. Raises `AliasNotFound`."""
        ...
