"""Tokens of an issuer: what proves a caller, and every way to forge one."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from pydantic import SecretStr

from app.bootstrap import Container
from app.db.session import Database
from app.domain.tenants import oidc
from app.domain.tenants.oidc import Issuer, TokenVerifier
from app.domain.tenants.service import TenantService
from app.main import create_app
from app.settings import Settings
from tests.factories import Tenancy

AUDIENCE = "trellis"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE_KEY = ec.generate_private_key(ec.SECP256R1())


def public(key: Any, key_id: str, algorithm: str) -> dict[str, Any]:
    as_json = RSAAlgorithm.to_jwk if algorithm == "RS256" else ECAlgorithm.to_jwk
    return {**json.loads(as_json(key.public_key())), "kid": key_id, "alg": algorithm, "use": "sig"}


@dataclass
class FakeIssuer:
    """Publishes its keys over HTTP, and counts how often they are read."""

    url: str = ""
    keys: list[dict[str, Any]] = field(default_factory=lambda: [public(KEY, "one", "RS256")])
    reads: int = 0
    is_away: bool = False

    async def configuration(self, _: web.Request) -> web.Response:
        return web.json_response({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})

    async def published(self, _: web.Request) -> web.Response:
        self.reads += 1
        if self.is_away:
            raise web.HTTPServiceUnavailable
        return web.json_response({"keys": self.keys})

    def token(self, tenancy: Tenancy, key: Any = KEY, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        standard = {
            "iss": self.url, "aud": AUDIENCE, "sub": "ada@harbor.example", "exp": int(time.time()) + 300,
            "tenant_id": str(tenancy.tenant_id), "role": "editor",
        }  # fmt: skip
        wanted = {name: value for name, value in (standard | claims).items() if value is not None}
        return jwt.encode(wanted, key, algorithm="RS256", headers={"kid": "one"} | (headers or {}))


@pytest.fixture
async def issuer() -> AsyncIterator[FakeIssuer]:
    fake = FakeIssuer()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", fake.configuration)
    app.router.add_get("/keys", fake.published)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield fake
    await runner.cleanup()


@pytest.fixture
async def user(issuer: FakeIssuer, container: Container) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that trusts the issuer."""
    async with httpx.AsyncClient() as http:
        verifier = TokenVerifier(Issuer(issuer.url, AUDIENCE, ("RS256", "ES256")), container.database, http)
        app = create_app(Container(**{**container.__dict__, "tokens": verifier}))
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://trellis") as client:
                yield client


async def me(user: httpx.AsyncClient, token: str) -> httpx.Response:
    return await user.get("/v1/me", headers={"Authorization": f"Bearer {token}"})


async def test_a_token_is_its_tenant_with_its_role(
    user: httpx.AsyncClient, issuer: FakeIssuer, tenancy: Tenancy
) -> None:
    found = (await me(user, issuer.token(tenancy))).json()
    assert found["tenant"]["id"] == str(tenancy.tenant_id)
    assert (found["role"], found["key_id"], found["subject"]) == ("editor", None, "ada@harbor.example")
    listed = (await me(user, issuer.token(tenancy, role=["reader", "admin", "something else"]))).json()
    assert listed["role"] == "admin"


async def test_a_token_reaches_its_own_tenant_only(
    user: httpx.AsyncClient, issuer: FakeIssuer, tenancy: Tenancy, other_tenancy: Tenancy
) -> None:
    workspace_id = await other_tenancy.add_workspace()
    headers = {"Authorization": f"Bearer {issuer.token(tenancy, role='admin')}"}
    assert (await user.get(f"/v1/workspaces/{workspace_id}", headers=headers)).status_code == 404
    assert (await user.get("/v1/keys", headers=headers)).json()["items"] == []


def forged(issuer: FakeIssuer, tenancy: Tenancy) -> Iterator[tuple[str, str]]:
    good = issuer.token(tenancy)
    head, body, signature = good.split(".")
    claims = jwt.decode(good, options={"verify_signature": False})
    public_key = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    yield "unsigned", jwt.encode(claims, "", algorithm="none", headers={"kid": "one"})
    yield "unsigned, with a signature", jwt.encode(claims, "", algorithm="none", headers={"kid": "one"}) + signature
    yield "signed with the public key", hmac_signed(claims, public_key)
    yield "signed by somebody else", issuer.token(tenancy, OTHER_KEY)
    yield "with another body", ".".join([head, issuer.token(tenancy, role="admin").split(".")[1], signature])
    yield "without a signature", f"{head}.{body}."
    yield "for somebody else", issuer.token(tenancy, aud="another product")
    yield "for nobody", issuer.token(tenancy, aud=None)
    yield "of another issuer", issuer.token(tenancy, iss="https://evil.example")
    yield "expired", issuer.token(tenancy, exp=int(time.time()) - 60)
    yield "without an end", issuer.token(tenancy, exp=None)
    yield "not yet valid", issuer.token(tenancy, nbf=int(time.time()) + 600)
    yield "of nobody", issuer.token(tenancy, sub=None)
    yield "with its own key", issuer.token(tenancy, OTHER_KEY, headers={"jwk": public(OTHER_KEY, "one", "RS256")})
    yield "with an unknown key", issuer.token(tenancy, OTHER_KEY, headers={"kid": "two"})
    yield "with a key that is no text", issuer.token(tenancy, headers={"kid": ""})
    yield "with a key's address", issuer.token(tenancy, OTHER_KEY, headers={"jku": "http://127.0.0.1:1/keys"})
    yield "with the other algorithm", jwt.encode(claims, CURVE_KEY, algorithm="ES256", headers={"kid": "one"})
    yield "broken", "eyJ.eyJ.x"
    yield "long", "a." + "b" * 20_000 + ".c"


def hmac_signed(claims: dict[str, Any], secret: bytes) -> str:
    """By hand: the library refuses to use a public key as a secret."""

    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")

    signed = f"{part(json.dumps({'alg': 'HS256', 'kid': 'one'}).encode())}.{part(json.dumps(claims).encode())}"
    return f"{signed}.{part(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


async def test_no_forged_token_gets_in(user: httpx.AsyncClient, issuer: FakeIssuer, tenancy: Tenancy) -> None:
    answers = {name: await me(user, token) for name, token in forged(issuer, tenancy)}
    assert {name: answer.status_code for name, answer in answers.items() if answer.status_code != 401} == {}
    assert {answer.json()["code"] for answer in answers.values()} == {"invalid_api_key"}


async def test_a_symmetric_key_of_the_issuer_is_not_used(
    user: httpx.AsyncClient, issuer: FakeIssuer, tenancy: Tenancy
) -> None:
    issuer.keys = [{"kty": "oct", "k": "c2VjcmV0LXRoYXQtZXZlcnlib2R5LWNhbi1yZWFkLWhlcmU", "kid": "one", "alg": "HS256"}]
    claims = jwt.decode(issuer.token(tenancy), options={"verify_signature": False})
    secret = b"secret-that-everybody-can-read-here"
    assert (await me(user, hmac_signed(claims, secret))).status_code == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"tenant_id": None},
        {"tenant_id": "acme"},
        {"tenant_id": str(uuid4())},
        {"role": None},
        {"role": "owner"},
        {"role": []},
        {"role": {"admin": True}},
        {"role": "ADMIN"},
        {"sub": ""},
        {"sub": "ada\0"},
        {"sub": "a" * 256},
    ],
)
async def test_a_token_that_names_no_tenant_and_role_is_403(
    user: httpx.AsyncClient, issuer: FakeIssuer, tenancy: Tenancy, claims: dict[str, Any]
) -> None:
    response = await me(user, issuer.token(tenancy, **claims))
    assert (response.status_code, response.json()["code"]) == (403, "token_not_mapped")


async def test_a_suspended_tenant_s_token_is_403(
    user: httpx.AsyncClient, issuer: FakeIssuer, tenancy: Tenancy, owner_database: Database
) -> None:
    await TenantService(owner_database).suspend(tenancy.tenant_id)
    assert (await me(user, issuer.token(tenancy))).json()["code"] == "tenant_suspended"


async def test_keys_are_read_once_and_again_for_a_new_one(
    user: httpx.AsyncClient, issuer: FakeIssuer, tenancy: Tenancy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        assert (await me(user, issuer.token(tenancy))).status_code == 200
    assert issuer.reads == 1
    issuer.keys.append(public(OTHER_KEY, "two", "RS256"))
    rotated = issuer.token(tenancy, OTHER_KEY, headers={"kid": "two"})
    for number in range(5):
        assert (await me(user, issuer.token(tenancy, headers={"kid": f"invented {number}"}))).status_code == 401
    # Invented ids make nobody ask the issuer again and again.
    assert issuer.reads == 1
    monkeypatch.setattr(oidc, "REFETCH_SECONDS", 0.0)
    assert (await me(user, rotated)).status_code == 200
    assert issuer.reads == 2


async def test_an_issuer_that_is_away_is_503_and_its_known_keys_go_on(
    user: httpx.AsyncClient, issuer: FakeIssuer, tenancy: Tenancy, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.is_away = True
    monkeypatch.setattr(oidc, "REFETCH_SECONDS", 0.0)
    response = await me(user, issuer.token(tenancy))
    assert (response.status_code, response.json()["code"]) == (503, "issuer_unavailable")
    issuer.is_away = False
    assert (await me(user, issuer.token(tenancy))).status_code == 200
    issuer.is_away = True
    monkeypatch.setattr(oidc, "KEYS_SECONDS", 0.0)
    assert (await me(user, issuer.token(tenancy))).status_code == 200


async def test_without_an_issuer_a_token_is_a_bad_key(
    anonymous: httpx.AsyncClient, issuer: FakeIssuer, tenancy: Tenancy
) -> None:
    assert (await me(anonymous, issuer.token(tenancy))).status_code == 401
    assert issuer.reads == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"oidc_issuer": "https://issuer.example"},
        {"oidc_algorithms": "HS256"},
        {"oidc_algorithms": "none"},
        {"oidc_algorithms": ""},
        {"oidc_issuer": "http://issuer.example", "oidc_audience": "trellis", "environment": "production"},
    ],
)
def test_an_unsafe_issuer_is_refused_at_the_start(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="TRELLIS_OIDC"):
        Settings(secret_key=SecretStr("a secret of one's own"), **settings)  # type: ignore[arg-type]
