"""The shape of an API key, `trl_<prefix>_<secret>`: the prefix finds its row, the secret's hash proves it. Pure."""

import hmac
import secrets
from dataclasses import dataclass, field
from hashlib import sha256

SCHEME = "trl"
PREFIX_BYTES = 6
SECRET_BYTES = 32
# Bounds what is hashed for a caller who is not known yet.
MAX_KEY_LENGTH = 200


@dataclass(frozen=True)
class PresentedKey:
    """A key as a caller sent it, or as it was just made."""

    prefix: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        return f"{SCHEME}_{self.prefix}_{self.secret}"


def new_key() -> PresentedKey:
    return PresentedKey(secrets.token_hex(PREFIX_BYTES), secrets.token_urlsafe(SECRET_BYTES))


def parse_key(text: str) -> PresentedKey | None:
    """None for anything that cannot be a key of ours."""
    scheme, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    if len(text) > MAX_KEY_LENGTH or not text.isascii() or scheme != SCHEME or not prefix.isalnum() or not secret:
        return None
    return PresentedKey(prefix, secret)


def hash_secret(secret: str) -> bytes:
    """A plain SHA-256: the secret is 256 random bits, so there is nothing to guess that a slow hash would protect, and
    every request pays for this."""
    return sha256(secret.encode()).digest()


def secret_matches(secret: str, stored_hash: bytes | None) -> bool:
    """Compare in constant time; without a stored hash (unknown prefix) do the same work and say no."""
    matches = hmac.compare_digest(hash_secret(secret), stored_hash if stored_hash is not None else bytes(32))
    return matches and stored_hash is not None
