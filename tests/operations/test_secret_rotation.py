"""A new TRELLIS_SECRET_KEY beside the old one, everything brought under it, and the old one taken away."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr, ValidationError
from sqlalchemy import text

from app.db.base import TenantId
from app.db.models import Webhook
from app.db.session import Database
from app.domain.events.webhook_repository import WebhookRepository
from app.domain.events.webhooks import webhook_box
from app.domain.models.service import ModelProfiles, NewProfile
from app.domain.secret_box import SecretBox, SecretUnreadable, _fernet
from app.domain.secret_rotation import renew_secrets
from app.settings import Settings
from tests.operations.conftest import MakeDatabase
from tests.operations.installation import Filled

OLD, NEW = SecretStr("the old secret"), SecretStr("the new secret")
BOTH = SecretStr("the new secret, the old secret")


def test_the_first_secret_encrypts_and_all_are_read() -> None:
    old, both, new = (SecretBox(secret, "test") for secret in (OLD, BOTH, NEW))
    assert both.decrypt(old.encrypt(b"kept")) == b"kept"
    assert new.decrypt(both.encrypt(b"made since")) == b"made since"
    assert new.decrypt(both.renew(old.encrypt(b"kept"))) == b"kept"
    with pytest.raises(SecretUnreadable):
        old.decrypt(both.encrypt(b"made since"))


@pytest.mark.parametrize("given", ["with, a comma", "with an end of line\n"])
def test_what_the_whole_value_encrypted_when_it_was_one_secret_is_read(given: str) -> None:
    kept = _fernet(given, "test").encrypt(b"kept")
    box = SecretBox(SecretStr(given), "test")
    assert box.decrypt(kept) == b"kept"
    assert SecretBox(SecretStr(given.split(",")[0].strip()), "test").decrypt(box.renew(kept)) == b"kept"


@pytest.mark.parametrize("given", ["a secret of our own,development-only-secret", " , "])
def test_no_secret_of_production_may_be_the_one_of_development_or_empty(given: str) -> None:
    with pytest.raises(ValidationError, match="TRELLIS_SECRET_KEY"):
        Settings(environment="production", secret_key=SecretStr(given))


def test_what_is_stored_is_read_with_the_new_secret_alone(filled: Filled, make_database: MakeDatabase) -> None:
    urls = make_database("rotated", filled.urls.owner.rsplit("/", 1)[1])
    asyncio.run(rotate(urls.owner, filled))


async def rotate(owner_url: str, filled: Filled) -> None:
    database = Database(owner_url, pool_size=2)
    try:
        profile = NewProfile(
            name="rotated", role="chat", provider="openai", model="m", base_url="https://m.example.com/v1",
            api_key=SecretStr("a key"),
        )  # fmt: skip
        await ModelProfiles(database, OLD).register(profile)
        webhook_id = await add_webhook(database, filled.tenant_id, webhook_box(OLD).encrypt(b"its secret"))
        for _ in range(2):
            renewed = await renew_secrets(database, BOTH)
            assert (renewed.model_keys, renewed.webhook_secrets) == (1, 1)
        found = await ModelProfiles(database, NEW).get_by_name("rotated")
        assert found.api_key is not None
        assert found.api_key.get_secret_value() == "a key"
        async with database.tenant(filled.tenant_id) as session:
            webhook = await WebhookRepository(session).find(webhook_id)
            assert webhook is not None
            assert webhook_box(NEW).decrypt(webhook.key) == b"its secret"
    finally:
        await database.close()


async def add_webhook(database: Database, tenant_id: TenantId, key: bytes) -> Any:
    async with database.tenant(tenant_id) as session:
        workspace_id = await session.scalar(text("SELECT id FROM workspaces"))
        webhook = Webhook(
            tenant_id=tenant_id,
            workspace_id=workspace_id,
            id=uuid4(),
            url="https://hooks.example.com",
            events=["ready"],
            key=key,
        )
        session.add(webhook)
        return webhook.id
