"""Registers model profiles and hands them out as what the providers' clients are made from."""

from dataclasses import dataclass, field
from typing import Final, cast
from uuid import UUID, uuid4

from pydantic import HttpUrl, SecretStr, TypeAdapter, ValidationError
from sqlalchemy.exc import IntegrityError

from app.db.models import ModelProfile as ProfileRow
from app.db.session import Database
from app.db.vector_tables import create_vector_tables, vector_suffix
from app.domain.models.key_box import KeyBox
from app.domain.models.repository import ModelProfileRepository
from app.errors import Conflict, Invalid, NotFound
from app.providers.contract import ModelProfile, ModelRole, Provider
from app.providers.offline.embeddings import offline_embedding

MAX_DIMENSION: Final = 16_000  # the longest vector that pgvector stores


class ModelNotFound(NotFound):
    code = "model_not_found"
    title = "Model profile not found"


class ModelExists(Conflict):
    code = "model_exists"
    title = "A model profile of this name exists"


class ProfileInvalid(Invalid):
    code = "model_profile_invalid"
    title = "The model profile cannot work"


@dataclass(frozen=True, slots=True)
class NewProfile:
    """A model as an operator describes it; `dimension` may be left out for an offline embedding."""

    name: str
    role: ModelRole
    provider: Provider
    model: str
    base_url: str | None = None
    api_key: SecretStr | None = field(default=None, repr=False)
    dimension: int | None = None
    max_concurrency: int = 8
    tokens_per_minute: int | None = None
    timeout_seconds: float = 120.0
    max_retries: int = 4
    price_input: float | None = None  # money for a million tokens
    price_output: float | None = None


class ModelProfiles:
    """Model profiles of the installation. Registering needs a database opened as the owner of the schema."""

    def __init__(self, database: Database, secret_key: SecretStr) -> None:
        self._database = database
        self._box = KeyBox(secret_key)

    async def register(self, new: NewProfile) -> ModelProfile:
        """Store a profile and, for embeddings, create its vector tables in the same transaction.

        Raises `ProfileInvalid` for a description that cannot work and `ModelExists`.
        """
        row = self._row(new)
        try:
            async with self._database.system() as session:
                await ModelProfileRepository(session).add(row)
                if row.table_suffix and row.dimension:
                    await create_vector_tables(session, row.table_suffix, row.dimension)
        except IntegrityError as error:
            raise ModelExists(f"There is a model profile named '{new.name}' already.", name=new.name) from error
        return self._profile(row)

    async def list(self) -> list[ModelProfile]:
        """All profiles by name."""
        async with self._database.system() as session:
            return [self._profile(row) for row in await ModelProfileRepository(session).list()]

    async def get(self, profile_id: UUID) -> ModelProfile:
        """Raises `ModelNotFound`."""
        async with self._database.system() as session:
            row = await ModelProfileRepository(session).find(profile_id)
        if row is None:
            raise ModelNotFound("There is no such model profile.")
        return self._profile(row)

    async def get_by_name(self, name: str) -> ModelProfile:
        """Raises `ModelNotFound`."""
        async with self._database.system() as session:
            row = await ModelProfileRepository(session).find_by_name(name)
        if row is None:
            raise ModelNotFound(f"There is no model profile named '{name}'.", name=name)
        return self._profile(row)

    def _row(self, new: NewProfile) -> ProfileRow:
        _check(new)
        dimension = None
        if new.role == "embedding":
            dimension = offline_embedding(new.model).dimension if new.provider == "offline" else new.dimension
        return ProfileRow(
            id=uuid4(),
            name=new.name,
            role=new.role,
            provider=new.provider,
            base_url=new.base_url,
            model=new.model,
            api_key_encrypted=self._box.encrypt(new.api_key) if new.api_key else None,
            dimension=dimension,
            # By the profile's name: two endpoints may serve models of the same name.
            table_suffix=vector_suffix(new.name, dimension) if dimension else None,
            max_concurrency=new.max_concurrency,
            tokens_per_minute=new.tokens_per_minute,
            timeout_seconds=new.timeout_seconds,
            max_retries=new.max_retries,
            price_input=new.price_input,
            price_output=new.price_output,
        )

    def _profile(self, row: ProfileRow) -> ModelProfile:
        return ModelProfile(
            id=row.id,
            name=row.name,
            role=cast(ModelRole, row.role),
            provider=cast(Provider, row.provider),
            model=row.model,
            base_url=row.base_url,
            api_key=self._box.decrypt(row.api_key_encrypted) if row.api_key_encrypted else None,
            dimension=row.dimension,
            table_suffix=row.table_suffix,
            max_concurrency=row.max_concurrency,
            tokens_per_minute=row.tokens_per_minute,
            timeout_seconds=row.timeout_seconds,
            max_retries=row.max_retries,
        )


def _check(new: NewProfile) -> None:
    if not new.name.strip() or not new.model.strip():
        raise ProfileInvalid("A model profile needs a name and a model.")
    if new.max_concurrency < 1 or new.timeout_seconds <= 0 or new.max_retries < 0:
        raise ProfileInvalid("Calls at once and the timeout must be above zero, retries not below it.")
    if new.tokens_per_minute is not None and new.tokens_per_minute < 1:
        raise ProfileInvalid("Tokens a minute must be above zero.")
    if new.provider == "offline":
        if new.role == "rerank":
            raise ProfileInvalid("There is no offline reranker.")
        return
    try:
        TypeAdapter(HttpUrl).validate_python(new.base_url)
    except ValidationError as error:
        raise ProfileInvalid("An endpoint needs a base URL such as https://api.example.com/v1.") from error
    if new.role == "embedding" and not 1 <= (new.dimension or 0) <= MAX_DIMENSION:
        raise ProfileInvalid(f"An embedding model needs its dimension, from 1 to {MAX_DIMENSION}.")
