"""What a new installation of the development stack holds: the offline models, a tenant, and a key to work with."""

import asyncio
import os
from pathlib import Path

from pydantic import SecretStr

from app.db.session import Database
from app.domain.models.offline import register_offline_models
from app.domain.models.service import ModelProfiles
from app.domain.tenants.errors import TenantNotFound
from app.domain.tenants.records import Role
from app.domain.tenants.service import Authenticator, TenantService
from app.errors import Unauthenticated

TENANT = "development"


def seed(owner_url: str, secret_key: SecretStr, folder: Path) -> str:
    """Make what is missing; the text of an admin's API key of the development tenant, the same on every run."""
    file = folder / "api-key"
    kept = file.read_text() if file.exists() else None
    key = asyncio.run(_seed(owner_url, secret_key, kept))
    if key != kept:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as output:
            output.write(key)
    return key


async def _seed(owner_url: str, secret_key: SecretStr, kept_key: str | None) -> str:
    database = Database(owner_url, pool_size=2)
    try:
        await register_offline_models(ModelProfiles(database, secret_key))
        if kept_key is not None and await _is_valid(database, kept_key):
            return kept_key
        return await _new_key(TenantService(database))
    finally:
        await database.close()


async def _is_valid(database: Database, key: str) -> bool:
    try:
        await Authenticator(database).verify(key)
    except Unauthenticated:
        return False
    return True


async def _new_key(tenants: TenantService) -> str:
    try:
        tenant = await tenants.get_tenant(TENANT)
    except TenantNotFound:
        tenant = await tenants.create_tenant(TENANT)
    return await tenants.create_key(tenant.id, name="trellis dev", role=Role.ADMIN)
