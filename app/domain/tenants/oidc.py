"""Tokens of an OpenID Connect issuer as a second way in, so that a product can pass its own users through.

What is trusted is pinned in the settings: issuer, audience and signature algorithms. The header of a token chooses a key
among the issuer's, never the algorithm's kind: `none` and the symmetric ones cannot be pinned at all.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import httpx
import jwt
import structlog

from app.db.base import TenantId
from app.db.session import Database
from app.domain.tenants.errors import InvalidApiKey, TenantSuspended, TokenNotMapped
from app.domain.tenants.records import Caller, Role
from app.domain.tenants.repository import KeyRepository
from app.errors import Unavailable
from app.settings import TOKEN_ALGORITHMS

logger = structlog.stdlib.get_logger(__name__)

# The issuer's keys are read again after so long, and for a key that is not known at most every so often: anybody can send
# tokens with invented key ids.
KEYS_SECONDS: Final = 3600.0
REFETCH_SECONDS: Final = 30.0
# While the issuer cannot be reached its last known keys go on counting for so long.
STALE_KEYS_SECONDS: Final = 24 * 3600.0
FETCH_SECONDS: Final = 5.0
MAX_DOCUMENT_BYTES: Final = 256 * 1024
MAX_TOKEN_CHARS: Final = 16 * 1024
MAX_SUBJECT_CHARS: Final = 255


class IssuerUnavailable(Unavailable):
    """The issuer's keys cannot be read now, so tokens cannot be verified; API keys work."""

    code = "issuer_unavailable"
    title = "The token issuer does not answer"


@dataclass(frozen=True)
class Issuer:
    """Who is trusted, for what, and where its tokens say which tenant and role they are for."""

    issuer: str
    audience: str
    algorithms: tuple[str, ...]
    jwks_url: str | None = None
    tenant_claim: str = "tenant_id"
    role_claim: str = "role"
    leeway_seconds: float = 30.0


def looks_like_token(text: str) -> bool:
    """Whether a bearer credential is meant as a JWT; no API key has a dot."""
    return text.count(".") == 2


class IssuerKeys:
    """The issuer's public keys by id, fetched by the first who needs them and kept. Belongs to one event loop."""

    def __init__(self, issuer: Issuer, client: httpx.AsyncClient) -> None:
        self._issuer = issuer
        self._client = client
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_at = -STALE_KEYS_SECONDS
        self._tried_at = -REFETCH_SECONDS
        self._lock = asyncio.Lock()

    async def find(self, key_id: str) -> jwt.PyJWK | None:
        """The key of this id, if the issuer has it. Raises IssuerUnavailable if no keys are known."""
        if not self._is_fresh() or key_id not in self._keys:
            await self._refresh(key_id)
        if time.monotonic() - self._read_at > STALE_KEYS_SECONDS:
            raise IssuerUnavailable("The keys of the token issuer cannot be read; try again shortly.")
        return self._keys.get(key_id)

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._read_at < KEYS_SECONDS

    async def _refresh(self, key_id: str) -> None:
        async with self._lock:
            if (self._is_fresh() and key_id in self._keys) or time.monotonic() - self._tried_at < REFETCH_SECONDS:
                return
            self._tried_at = time.monotonic()
            try:
                self._keys = _usable(await self._fetch())
            except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
                logger.warning("issuer_keys_not_read", error_type=type(error).__name__)
                return
            self._read_at = time.monotonic()

    async def _fetch(self) -> list[Any]:
        url = self._issuer.jwks_url
        if url is None:
            discovered = await self._get(f"{self._issuer.issuer.rstrip('/')}/.well-known/openid-configuration")
            if discovered["issuer"] != self._issuer.issuer:
                raise ValueError("the discovered issuer is another one")
            url = str(discovered["jwks_uri"])
        return list((await self._get(url))["keys"])

    async def _get(self, url: str) -> Any:
        response = await self._client.get(url, timeout=FETCH_SECONDS, follow_redirects=False)
        response.raise_for_status()
        if len(response.content) > MAX_DOCUMENT_BYTES:
            raise ValueError("the issuer's answer is too large")
        return response.json()


class TokenVerifier:
    """Turns a token into a caller."""

    def __init__(self, issuer: Issuer, database: Database, client: httpx.AsyncClient) -> None:
        self._issuer = issuer
        self._database = database
        self._keys = IssuerKeys(issuer, client)

    async def verify(self, token: str) -> Caller:
        """Raises InvalidApiKey for a token that proves nothing, TokenNotMapped for a good one that names no tenant and
        role of ours, TenantSuspended, and IssuerUnavailable."""
        claims = await self._claims(token)
        tenant_id, role = self._mapped(claims)
        async with self._database.tenant(tenant_id) as session:
            found = await KeyRepository(session).tenant_status()
        if found is None:
            raise TokenNotMapped("The token is valid, but its tenant does not exist here.")
        status, per_minute = found
        if status != "active":
            raise TenantSuspended("This tenant is suspended; ask the operator of this installation.")
        return Caller(None, TenantId(tenant_id), role, None, _subject(claims), per_minute)

    async def _claims(self, token: str) -> dict[str, Any]:
        if len(token) > MAX_TOKEN_CHARS:
            raise _invalid()
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            raise _invalid() from None
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in self._issuer.algorithms or not isinstance(key_id, str):
            raise _invalid()
        key = await self._keys.find(key_id)
        if key is None or key.algorithm_name != algorithm:
            raise _invalid()
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._issuer.audience,
                issuer=self._issuer.issuer,
                leeway=self._issuer.leeway_seconds,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            raise _invalid() from None
        return claims

    def _mapped(self, claims: dict[str, Any]) -> tuple[UUID, Role]:
        given = claims.get(self._issuer.role_claim)
        names = given if isinstance(given, list) else [given]
        roles = [role for role in Role if role.value in names]
        try:
            tenant_id = UUID(str(claims.get(self._issuer.tenant_claim)))
        except ValueError:
            tenant_id = None
        if tenant_id is None or not roles:
            raise TokenNotMapped(
                f"The token is valid, but its claims {self._issuer.tenant_claim!r} and {self._issuer.role_claim!r}"
                " name no tenant and role of this installation."
            )
        return tenant_id, roles[-1]


def _subject(claims: dict[str, Any]) -> str:
    """The user; never shortened, for two users must not become one in the audit log and among kept answers."""
    subject = str(claims["sub"])
    if not 0 < len(subject) <= MAX_SUBJECT_CHARS or not subject.isprintable():
        raise TokenNotMapped(
            f"The token is valid, but its claim 'sub' is not a printable text of 1 to {MAX_SUBJECT_CHARS} characters."
        )
    return subject


def _usable(found: list[Any]) -> dict[str, jwt.PyJWK]:
    """Public signature keys by id. A symmetric key that an issuer publishes by mistake is nobody's secret."""
    keys: dict[str, jwt.PyJWK] = {}
    for item in found:
        if not isinstance(item, dict) or not isinstance(item.get("kid"), str) or item.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(item)
        except jwt.PyJWTError:
            continue  # of a kind that we cannot use; the others may do
        if key.algorithm_name in TOKEN_ALGORITHMS:
            keys[item["kid"]] = key
    return keys


def _invalid() -> InvalidApiKey:
    return InvalidApiKey("Send a valid API key or token as `Authorization: Bearer …`.")
