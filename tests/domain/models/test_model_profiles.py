"""Registering model profiles: keys encrypted, vector tables in the same transaction, runtime roles that can only read."""

from dataclasses import replace

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from app.db.session import Database
from app.domain.models.key_box import KeyBox, KeyUnreadable
from app.domain.models.service import ModelExists, ModelNotFound, ModelProfiles, NewProfile, ProfileInvalid
from app.settings import Settings

KEY = SecretStr("sk-very-secret-key-of-a-provider")
CHAT = NewProfile("chat-a", "chat", "openai", "gpt-x", base_url="http://127.0.0.1:9/v1", api_key=KEY)
EMBEDDING = NewProfile("Embed A/1", "embedding", "openai", "embed-x", base_url="http://127.0.0.1:9/v1", dimension=8)


@pytest.fixture
def owner_profiles(owner_database: Database, settings: Settings) -> ModelProfiles:
    return ModelProfiles(owner_database, settings.secret_key)


async def test_registered_profile_comes_back_with_its_key(
    owner_profiles: ModelProfiles, database: Database, settings: Settings
) -> None:
    registered = await owner_profiles.register(replace(CHAT, name="roundtrip", tokens_per_minute=1000))
    served = ModelProfiles(database, settings.secret_key)
    assert await served.get_by_name("roundtrip") == registered
    assert await served.get(registered.id) == registered
    assert registered in await served.list()
    assert registered.api_key == KEY
    assert registered.tokens_per_minute == 1000


async def test_key_is_encrypted_at_rest_and_shown_nowhere(
    owner_profiles: ModelProfiles, owner_database: Database
) -> None:
    new = replace(CHAT, name="encrypted")
    profile = await owner_profiles.register(new)
    async with owner_database.system() as session:
        row = await session.execute(text("SELECT model_profiles::text FROM model_profiles WHERE name = 'encrypted'"))
        stored = row.scalar_one()
    secret = KEY.get_secret_value()
    assert secret not in stored
    assert secret.encode().hex() not in stored
    assert secret not in f"{profile!r} {profile} {new!r}"


async def test_key_under_another_secret_is_a_clear_error(owner_profiles: ModelProfiles, database: Database) -> None:
    await owner_profiles.register(replace(CHAT, name="locked"))
    with pytest.raises(KeyUnreadable, match="TRELLIS_SECRET_KEY"):
        await ModelProfiles(database, SecretStr("another secret")).get_by_name("locked")


def test_same_key_is_never_encrypted_to_the_same_bytes() -> None:
    box = KeyBox(SecretStr("secret"))
    assert box.encrypt(KEY) != box.encrypt(KEY)
    assert box.decrypt(box.encrypt(KEY)) == KEY


async def test_embedding_profile_gets_its_vector_tables(
    owner_profiles: ModelProfiles, owner_database: Database
) -> None:
    profile = await owner_profiles.register(EMBEDDING)
    assert profile.table_suffix
    async with owner_database.system() as session:
        found = await session.execute(
            text("SELECT count(*) FROM pg_tables WHERE tablename LIKE '%' || :suffix"), {"suffix": profile.table_suffix}
        )
        assert found.scalar_one() == 4


async def test_failed_registration_leaves_no_tables_and_no_row(
    owner_profiles: ModelProfiles, owner_database: Database
) -> None:
    await owner_profiles.register(replace(CHAT, name="taken"))
    with pytest.raises(ModelExists, match="taken"):
        await owner_profiles.register(replace(EMBEDDING, name="taken"))
    async with owner_database.system() as session:
        found = await session.execute(text("SELECT count(*) FROM pg_tables WHERE tablename LIKE '%taken%'"))
        assert found.scalar_one() == 0


async def test_offline_embedding_knows_its_dimension(owner_profiles: ModelProfiles) -> None:
    profile = await owner_profiles.register(NewProfile("offline-words", "embedding", "offline", "wordllama"))
    assert profile.dimension == 256
    assert profile.is_offline


async def test_unknown_profile_is_not_found(owner_profiles: ModelProfiles) -> None:
    with pytest.raises(ModelNotFound):
        await owner_profiles.get_by_name("nobody")


@pytest.mark.parametrize(
    "new",
    [
        replace(CHAT, name=" "),
        replace(CHAT, base_url=None),
        replace(CHAT, base_url="ftp://example.com"),
        replace(CHAT, max_concurrency=0),
        replace(CHAT, timeout_seconds=0),
        replace(CHAT, tokens_per_minute=0),
        replace(EMBEDDING, dimension=None),
        replace(EMBEDDING, dimension=20_000),
        NewProfile("x", "rerank", "offline", "x"),
    ],
)
async def test_profile_that_cannot_work_is_refused(owner_profiles: ModelProfiles, new: NewProfile) -> None:
    with pytest.raises(ProfileInvalid):
        await owner_profiles.register(new)


async def test_serving_role_cannot_register(database: Database, settings: Settings) -> None:
    with pytest.raises(Exception, match="permission denied"):
        await ModelProfiles(database, settings.secret_key).register(replace(CHAT, name="sneaky"))
