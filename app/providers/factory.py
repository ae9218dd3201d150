"""Makes the client of a model profile, once per process and profile."""

from redis.asyncio import Redis

from app.errors import Invalid
from app.providers.contract import ChatModel, EmbeddingModel, ModelProfile
from app.providers.offline.chat import OfflineChat
from app.providers.offline.embeddings import OfflineEmbeddings
from app.settings import Settings


class ModelFactory:
    """Caches clients by profile name; a changed profile gets a new client, and the old one is closed with the factory.

    Belongs to one event loop, as its clients' connections do.
    """

    def __init__(self, settings: Settings, redis: "Redis") -> None:
        self._settings = settings
        self._redis = redis
        self._chat: dict[ModelProfile, ChatModel] = {}
        self._embedding: dict[ModelProfile, EmbeddingModel] = {}

    def chat(self, profile: ModelProfile) -> ChatModel:
        if profile.role != "chat":
            raise Invalid(f"The model profile '{profile.name}' is for {profile.role}, not for chat.", code="wrong_role")
        if profile not in self._chat:
            self._chat[profile] = OfflineChat(profile)
        return self._chat[profile]

    def embedding(self, profile: ModelProfile) -> EmbeddingModel:
        if profile.role != "embedding":
            raise Invalid(
                f"The model profile '{profile.name}' is for {profile.role}, not for embedding.", code="wrong_role"
            )
        if profile not in self._embedding:
            self._embedding[profile] = OfflineEmbeddings(profile)
        return self._embedding[profile]

    async def aclose(self) -> None:
        """Close every client made; the factory is not used after that."""
        for client in (*self._chat.values(), *self._embedding.values()):
            await client.aclose()
        self._chat.clear()
        self._embedding.clear()
