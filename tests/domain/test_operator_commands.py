"""`trellis tenant` and `trellis key`, as an operator types them."""

import asyncio
import secrets
from collections.abc import Callable
from uuid import uuid4

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from app.cli.main import app
from app.db.provision import DatabaseUrls
from app.db.session import Database
from app.domain.tenants.errors import InvalidApiKey, TenantNotFound, TenantSuspended
from app.domain.tenants.key_service import KeyTargetMissing
from app.domain.tenants.records import Role
from app.domain.tenants.service import Authenticator, TenantExists
from app.settings import DEVELOPMENT_SECRET, Settings

Trellis = Callable[..., str]


@pytest.fixture
def trellis(urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> Trellis:
    """Runs a command and returns what it printed; raises what it raised."""
    monkeypatch.setenv("TRELLIS_OWNER_DATABASE_URL", urls.owner)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, list(words), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output.strip()

    return run


@pytest.fixture
def tenant(trellis: Trellis) -> str:
    name = f"Harbor {secrets.token_hex(4)}"
    trellis("tenant", "create", name)
    return name


def verified(urls: DatabaseUrls, key: str) -> Role:
    async def verify() -> Role:
        database = Database(urls.app, pool_size=1)
        try:
            return (await Authenticator(database).verify(key)).role
        finally:
            await database.close()

    return asyncio.run(verify())


def test_a_tenant_is_listed(trellis: Trellis, tenant: str) -> None:
    assert tenant in trellis("tenant", "list")


def test_a_tenant_s_name_is_taken_once(trellis: Trellis, tenant: str) -> None:
    with pytest.raises(TenantExists):
        trellis("tenant", "create", tenant)


def test_a_key_works_until_it_is_revoked(trellis: Trellis, tenant: str, urls: DatabaseUrls) -> None:
    key = trellis("key", "create", tenant, "--role", "reader", "--days", "1")
    assert verified(urls, key) is Role.READER
    prefix = key.split("_")[1]
    assert prefix in trellis("key", "list", tenant)
    trellis("key", "revoke", tenant, prefix)
    with pytest.raises(InvalidApiKey):
        verified(urls, key)


def test_a_key_is_rotated(trellis: Trellis, tenant: str, urls: DatabaseUrls) -> None:
    old = trellis("key", "create", tenant, "--role", "reader")
    new = trellis("key", "rotate", tenant, old.split("_")[1])
    assert verified(urls, new) is Role.READER
    with pytest.raises(InvalidApiKey):
        verified(urls, old)


def test_a_tenant_is_suspended_and_resumed(trellis: Trellis, tenant: str, urls: DatabaseUrls) -> None:
    key = trellis("key", "create", tenant)
    trellis("tenant", "suspend", tenant)
    with pytest.raises(TenantSuspended):
        verified(urls, key)
    trellis("tenant", "resume", tenant)
    assert verified(urls, key) is Role.EDITOR


def test_a_tenant_is_deleted_after_a_question(trellis: Trellis, tenant: str, urls: DatabaseUrls) -> None:
    key = trellis("key", "create", tenant)
    declined = CliRunner().invoke(app, ["tenant", "delete", tenant], input="n\n")
    assert declined.exit_code != 0
    assert verified(urls, key) is Role.EDITOR
    assert "0 workspaces and 0 documents left" in trellis("tenant", "delete", tenant, "--yes")
    with pytest.raises(InvalidApiKey):
        verified(urls, key)


def test_a_listing_never_shows_a_secret(trellis: Trellis, tenant: str) -> None:
    key = trellis("key", "create", tenant)
    assert key.split("_", 2)[2] not in trellis("key", "list", tenant)


def test_a_key_of_a_tenant_that_is_not_there_is_refused(trellis: Trellis) -> None:
    with pytest.raises(TenantNotFound):
        trellis("key", "create", "nobody at all")


def test_a_key_for_a_workspace_that_is_not_there_is_refused(trellis: Trellis, tenant: str) -> None:
    with pytest.raises(KeyTargetMissing):
        trellis("key", "create", tenant, "--workspace", str(uuid4()))


def test_without_the_owner_s_url_the_command_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRELLIS_OWNER_DATABASE_URL", raising=False)
    result = CliRunner().invoke(app, ["tenant", "list"])
    assert result.exit_code != 0
    assert "TRELLIS_OWNER_DATABASE_URL" in result.output


def test_a_default_secret_is_refused_outside_development() -> None:
    with pytest.raises(ValueError, match="TRELLIS_SECRET_KEY"):
        Settings(environment="production")
    with pytest.raises(ValueError, match="TRELLIS_SECRET_KEY"):
        Settings(environment="production", secret_key=SecretStr(DEVELOPMENT_SECRET))
    Settings(environment="production", secret_key=SecretStr("a secret of one's own"))
