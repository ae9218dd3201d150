"""Makes the client of a model profile, once per process and profile."""

from redis.asyncio import Redis

from app.errors import Invalid
from app.providers.contract import ChatModel, EmbeddingModel, ModelProfile, ModelRole, RerankModel
from app.providers.limits import ModelLimits
from app.providers.offline.chat import OfflineChat
from app.providers.offline.embeddings import OfflineEmbeddings
from app.providers.openai_chat import OpenAIChat
from app.providers.openai_embeddings import OpenAIEmbeddings
from app.providers.rerank import Reranker


class ModelFactory:
    """Caches clients by profile; a changed profile gets a new client, and the old one is closed with the factory.

    Belongs to one event loop, as its clients' connections do.
    """

    def __init__(self, redis: "Redis") -> None:
        self._redis = redis
        self._chat: dict[ModelProfile, ChatModel] = {}
        self._embedding: dict[ModelProfile, EmbeddingModel] = {}
        self._rerank: dict[ModelProfile, RerankModel] = {}
        self._limits: dict[ModelProfile, ModelLimits] = {}

    @property
    def are_limits_degraded(self) -> bool:
        """Whether some model's limits hold for this process alone because Redis could not be reached."""
        return any(limits.is_degraded for limits in self._limits.values())

    def chat(self, profile: ModelProfile) -> ChatModel:
        _require_role(profile, "chat")
        if profile not in self._chat:
            self._chat[profile] = (
                OfflineChat(profile) if profile.is_offline else OpenAIChat(profile, self._limits_of(profile))
            )
        return self._chat[profile]

    def embedding(self, profile: ModelProfile) -> EmbeddingModel:
        _require_role(profile, "embedding")
        if profile not in self._embedding:
            self._embedding[profile] = (
                OfflineEmbeddings(profile)
                if profile.is_offline
                else OpenAIEmbeddings(profile, self._limits_of(profile))
            )
        return self._embedding[profile]

    def rerank(self, profile: ModelProfile) -> RerankModel:
        _require_role(profile, "rerank")
        if profile not in self._rerank:
            self._rerank[profile] = Reranker(profile, self._limits_of(profile))
        return self._rerank[profile]

    async def aclose(self) -> None:
        """Close every client made; the factory is not used after that."""
        clients: list[ChatModel | EmbeddingModel | RerankModel] = [*self._chat.values(), *self._embedding.values()]
        for client in (*clients, *self._rerank.values()):
            await client.aclose()

    def _limits_of(self, profile: ModelProfile) -> ModelLimits:
        return self._limits.setdefault(profile, ModelLimits(self._redis, profile))


def _require_role(profile: ModelProfile, role: ModelRole) -> None:
    if profile.role != role:
        raise Invalid(
            f"The model profile '{profile.name}' is for {profile.role}, not for {role}.", code="wrong_model_role"
        )
