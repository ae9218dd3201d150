"""Process settings, read once from the environment (`TRELLIS_*`) by bootstrap; refuses what would be unsafe to run with."""

import os
from ipaddress import ip_network
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

DEVELOPMENT_SECRET = "development-only-secret"  # noqa: S105 - refused outside development

# Whoever has it can do everything to every tenant, and it can be tried over HTTP.
OPERATOR_SECRET_CHARS = 24

# Signatures that only the issuer can make: with a symmetric one everybody who can verify could also sign.
TOKEN_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})

# LightRAG reads these from the environment, `.env` or `config.ini`, and they would silently put every workspace into
# one (facts F9) or end the process at construction.
ENGINE_HIJACKERS = ("POSTGRES_WORKSPACE", "WORKSPACE", "ENTITY_TYPES")

# Between two statements of a transaction a process may have to think for some seconds on a busy machine.
SHORTEST_IDLE_SECONDS = 15.0


class Settings(BaseSettings):
    """Every knob of a process. Times are in seconds, sizes in bytes unless the name says otherwise."""

    # An error of a setting is shown and logged: what was given may be a secret.
    model_config = SettingsConfigDict(env_prefix="TRELLIS_", frozen=True, extra="ignore", hide_input_in_errors=True)

    environment: Literal["development", "production"] = "development"
    secret_key: SecretStr = SecretStr(DEVELOPMENT_SECRET)
    operator_secret: SecretStr | None = Field(default=None, description="Opens `/v1/admin`; without it that is closed.")
    metrics_token: SecretStr | None = Field(default=None, description="Opens `/metrics`; without it that is closed.")
    trusted_proxies: str = Field(default="", description="Networks whose X-Forwarded-For is believed, by comma.")
    oidc_issuer: str | None = Field(default=None, description="Accept tokens of this issuer beside API keys.")
    oidc_audience: str | None = None
    oidc_jwks_url: str | None = Field(default=None, description="Where its keys are; left out, as it says itself.")
    oidc_algorithms: str = "RS256"
    oidc_tenant_claim: str = "tenant_id"
    oidc_role_claim: str = "role"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "console"] = "json"
    traces_endpoint: str | None = Field(default=None, description="Where traces go by OTLP over HTTP; none: nowhere.")
    traces_headers: SecretStr = Field(default=SecretStr(""), description="Of each request there: name=value by comma.")
    traces_sample_ratio: float = Field(default=1.0, ge=0, le=1, description="The share of traces that is kept.")

    database_url: SecretStr = SecretStr("postgresql://trellis_app@localhost/trellis")
    database_pooler: Literal["none", "transaction"] = Field(
        default="none",
        description="What stands before `database_url`: a pooler that lends connections for a transaction.",
    )
    engine_database_url: SecretStr = SecretStr("postgresql://trellis_engine@localhost/trellis")
    owner_database_url: SecretStr | None = Field(default=None, description="Only migrations and operator commands.")
    database_pool_size: int = Field(default=10, ge=1, le=200)
    engine_pool_size: int = Field(default=8, ge=2, le=100)
    statement_timeout_seconds: float = Field(default=60, gt=0)

    redis_url: SecretStr = SecretStr("redis://localhost:6379/0")
    blob_url: str = Field(default="file:///var/lib/trellis/blobs", description="file:///folder or s3://bucket/prefix")
    scratch_dir: Path = Field(default=Path("/tmp/trellis"), description="Empty working folder of the engine.")  # noqa: S108

    max_upload_bytes: int = Field(default=50 * 2**20, ge=1)
    max_request_bytes: int = Field(default=200 * 2**20, ge=1)
    max_files_per_request: int = Field(default=100, ge=1)
    max_bulk_bytes: int = Field(default=2 * 2**30, ge=1)
    max_files_per_bulk: int = Field(default=1000, ge=1)
    body_idle_seconds: float = Field(default=30, gt=0, description="How long a body that is sent may stand still.")
    cors_origins: str = Field(default="", description="Origins whose pages may call the API, by comma.")
    max_text_chars: int = Field(default=20_000_000, ge=1000)
    parse_timeout_seconds: float = Field(default=120, gt=0)
    parse_memory_bytes: int = Field(default=2 * 2**30, ge=128 * 2**20)
    extract_timeout_seconds: float = Field(default=1800, gt=0)
    merge_timeout_seconds: float = Field(default=900, gt=0)

    lease_seconds: float = Field(default=60, gt=1)
    sweep_interval_seconds: float = Field(default=30, gt=0)
    requeue_after_seconds: float = Field(default=60, gt=0)
    leftover_interval_seconds: float = Field(default=3600, gt=0)
    leftover_age_seconds: float = Field(default=24 * 3600, gt=0)
    event_seconds: float = Field(default=30 * 86_400, gt=0, description="How long events are kept.")
    query_seconds: float = Field(default=30 * 86_400, gt=0, description="How long logged queries are kept.")
    webhook_allow_private: bool = Field(default=False, description="Also call private addresses, and http.")
    webhook_interval_seconds: float = Field(default=2, gt=0)
    webhook_timeout_seconds: float = Field(default=10, gt=0)
    webhook_backoff_seconds: float = Field(
        default=10, gt=0, description="Before the second attempt; then four times that."
    )
    webhook_max_attempts: int = Field(default=8, ge=1)
    idempotency_seconds: float = Field(default=86_400, gt=0, description="How long answers are kept for repetitions.")
    max_attempts: int = Field(default=5, ge=1)
    graph_store: Literal["units", "stock"] = Field(
        default="units", description="`stock`: LightRAG's own storages, which write as they go."
    )
    lazy_cache_bytes: int = Field(
        default=64 * 2**20, ge=0, description="What a process remembers of lazy and baseline queries; 0: nothing."
    )
    engine_instances: int = Field(default=16, ge=1, description="LightRAG instances kept open in a process.")
    engine_units_at_once: int = Field(
        default=8, ge=1, description="Graph writes that a process holds in memory at once."
    )
    engine_unit_max_objects: int = Field(default=50_000, ge=100, description="Rows that one graph write may touch.")
    engine_unit_max_bytes: int = Field(
        default=512 * 2**20, ge=2**20, description="Texts and vectors of one graph write."
    )
    merge_inline_relations: int = Field(
        default=1000, ge=0, description="Relations that a merge or its undoing touches at most while its caller waits."
    )
    themes_min_passages: int = Field(default=20, ge=1, description="Below that a workspace has no themes.")
    themes_max_passages: int = Field(
        default=50_000, ge=0, description="More are sampled when themes are built; 0: none are built."
    )
    themes_build_seconds: float = Field(default=600, gt=0, description="A build of themes that takes longer is ended.")
    themes_refresh_share: float = Field(
        default=0.2, gt=0, description="Of the passages, what has to come or go before themes are built again."
    )
    themes_formula: Literal["weighted", "product"] = Field(
        default="product", description="Of a theme's importance: a product of its parts, or their weighted mean."
    )
    themes_size_weight: float = Field(default=0.3, ge=0, description="Of a theme's size in its importance.")
    themes_distinctiveness_weight: float = Field(
        default=0.4, ge=0, description="Of a theme's distinctiveness in its importance."
    )
    themes_density_weight: float = Field(default=0.3, ge=0, description="Of a theme's density in its importance.")
    worker_concurrency: int = Field(default=4, ge=1, description="Documents worked on at once by one worker process.")
    worker_metrics_port: int | None = Field(
        default=None, ge=1, le=65535, description="Where each worker tells its metrics; none: nowhere."
    )
    worker_metrics_host: str = "127.0.0.1"
    shutdown_grace_seconds: float = Field(default=20, ge=0)
    rerank_timeout_seconds: float = Field(default=3, gt=0)
    answer_timeout_seconds: float = Field(default=300, gt=0, description="For a chat model to write one answer.")
    answer_max_tokens: int = Field(default=16_384, ge=1, description="What a client may ask for in one answer.")
    default_chat_model: str = "offline-extractor"
    default_embedding_model: str = "offline-use"

    @property
    def secret_keys(self) -> tuple[str, ...]:
        """The first encrypts; the others are of before a rotation, and still read."""
        return tuple(part.strip() for part in self.secret_key.get_secret_value().split(",") if part.strip())

    @property
    def idle_in_transaction_seconds(self) -> float:
        """How long a transaction may wait for its process: work of a lease's length is taken over, so its locks must go."""
        return max(self.lease_seconds, SHORTEST_IDLE_SECONDS)

    @model_validator(mode="after")
    def _refuse_default_secret(self) -> Self:
        secrets = self.secret_keys
        if not secrets:
            raise ValueError("TRELLIS_SECRET_KEY is empty; set a secret of your own")
        if self.environment != "development" and DEVELOPMENT_SECRET in secrets:
            raise ValueError("TRELLIS_SECRET_KEY still has its development value; set a secret of your own")
        return self

    @model_validator(mode="after")
    def _refuse_half_an_issuer(self) -> Self:
        if self.oidc_issuer is not None and not self.oidc_audience:
            raise ValueError("TRELLIS_OIDC_AUDIENCE must be set: tokens that the issuer made for others prove nothing")
        if unsafe := set(self.oidc_algorithm_names) - TOKEN_ALGORITHMS or not self.oidc_algorithm_names:
            raise ValueError(f"TRELLIS_OIDC_ALGORITHMS holds {unsafe}; use some of {sorted(TOKEN_ALGORITHMS)}")
        for url in (self.oidc_issuer, self.oidc_jwks_url):
            if url is not None and self.environment != "development" and not url.startswith("https://"):
                raise ValueError("TRELLIS_OIDC_ISSUER and TRELLIS_OIDC_JWKS_URL must begin with https://")
        return self

    @model_validator(mode="after")
    def _refuse_bad_networks(self) -> Self:
        for network in self.trusted_networks:
            ip_network(network, strict=False)
        return self

    @model_validator(mode="after")
    def _refuse_secrets_in_the_endpoint(self) -> Self:
        if not self.traces_endpoint:
            return self
        url = urlsplit(self.traces_endpoint)
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query:
            raise ValueError("TRELLIS_TRACES_ENDPOINT is not an http or https URL, or holds credentials or a query")
        return self

    @property
    def trusted_networks(self) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.trusted_proxies.split(",") if part.strip())

    @model_validator(mode="after")
    def _refuse_any_origin(self) -> Self:
        for origin in self.allowed_origins:
            url = urlsplit(origin)
            if url.scheme not in ("http", "https") or not url.hostname or origin != f"{url.scheme}://{url.netloc}":
                raise ValueError(
                    "TRELLIS_CORS_ORIGINS names origins by comma, such as https://app.example.com, and no wildcard"
                )
        return self

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.cors_origins.split(",") if part.strip())

    @property
    def oidc_algorithm_names(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.oidc_algorithms.split(",") if name.strip())

    @model_validator(mode="after")
    def _refuse_weak_operator_secret(self) -> Self:
        given = self.operator_secret.get_secret_value() if self.operator_secret is not None else None
        if given is None or self.environment == "development":
            return self
        if given == DEVELOPMENT_SECRET or len(given) < OPERATOR_SECRET_CHARS:
            raise ValueError(f"TRELLIS_OPERATOR_SECRET needs {OPERATOR_SECRET_CHARS} characters of your own at least")
        if given in self.secret_keys:
            raise ValueError("TRELLIS_OPERATOR_SECRET must not be the same as TRELLIS_SECRET_KEY")
        return self


class UnsafeEnvironment(RuntimeError):
    """The surroundings of this process would redirect the graph engine; the message names the culprit."""


def refuse_engine_hijack(folder: Path | None = None) -> None:
    """Raise `UnsafeEnvironment` if an environment variable or file would redirect LightRAG (facts F9, case C5).

    LightRAG reads `.env` and `config.ini` from the working directory when it is imported, so a process calls this
    before it imports the engine.
    """
    for name in ENGINE_HIJACKERS:
        if name in os.environ:
            raise UnsafeEnvironment(f"environment variable {name} is set; it would redirect the graph engine: unset it")
    for name in ("config.ini", ".env"):
        path = (folder or Path.cwd()) / name
        if path.exists() and _names_engine_settings(path):
            raise UnsafeEnvironment(f"{path} sets options of the graph engine; move it out of the working directory")


def _names_engine_settings(path: Path) -> bool:
    """Whether a `.env` or `config.ini` holds anything that LightRAG would take for itself."""
    if path.name == "config.ini":
        return True
    keys = {line.split("=", 1)[0].removeprefix("export ").strip().upper() for line in path.read_text().splitlines()}
    return any(key in ENGINE_HIJACKERS or key.startswith("POSTGRES_") for key in keys)
