"""Encrypts what is kept at rest and must be read again, with keys derived from the installation's secret."""

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

from app.errors import Unavailable


class SecretUnreadable(Unavailable):
    """Something stored was encrypted under another TRELLIS_SECRET_KEY."""

    code = "secret_unreadable"
    title = "Something stored cannot be read"


class SecretBox:
    """Fernet (AES-128-CBC with HMAC-SHA256) under HKDF-SHA256 (RFC 5869) of the secret, so that the secret itself and
    the keys of other purposes stay unrelated to this one.

    `secret_key` may be several secrets by comma: the first encrypts, and what any of them has encrypted is read. So is
    what the value as a whole has: releases before took it as one secret, whatever commas or space it held.
    """

    def __init__(self, secret_key: SecretStr, purpose: str) -> None:
        whole = secret_key.get_secret_value()
        secrets = [secret for part in whole.split(",") if (secret := part.strip())]
        before = [whole] if secrets != [whole] else []
        self._fernet = MultiFernet([_fernet(secret, purpose) for secret in (*secrets, *before)])

    def encrypt(self, plain: bytes) -> bytes:
        return self._fernet.encrypt(plain)

    def decrypt(self, encrypted: bytes) -> bytes:
        """Raises `SecretUnreadable`."""
        try:
            return self._fernet.decrypt(encrypted)
        except InvalidToken as error:
            raise SecretUnreadable("Something stored cannot be read with this TRELLIS_SECRET_KEY.") from error

    def renew(self, encrypted: bytes) -> bytes:
        """The same under the first secret. Raises `SecretUnreadable`."""
        return self.encrypt(self.decrypt(encrypted))


def _fernet(secret: str, purpose: str) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose.encode()).derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
