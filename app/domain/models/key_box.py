"""Encrypts the keys of model providers at rest with a key derived from the installation's secret."""

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

from app.errors import Unavailable


class KeyUnreadable(Unavailable):
    """The stored key was encrypted under another TRELLIS_SECRET_KEY."""

    code = "model_key_unreadable"
    title = "The model's key cannot be read"


class KeyBox:
    """Fernet (AES-128-CBC with HMAC-SHA256) under HKDF-SHA256 (RFC 5869) of the secret, so that the secret itself and
    other keys derived from it stay unrelated to this one.
    """

    def __init__(self, secret_key: SecretStr) -> None:
        derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"trellis model provider keys").derive(
            secret_key.get_secret_value().encode()
        )
        self._fernet = Fernet(base64.urlsafe_b64encode(derived))

    def encrypt(self, key: SecretStr) -> bytes:
        return self._fernet.encrypt(key.get_secret_value().encode())

    def decrypt(self, encrypted: bytes) -> SecretStr:
        """Raises `KeyUnreadable`."""
        try:
            return SecretStr(self._fernet.decrypt(encrypted).decode())
        except InvalidToken as error:
            raise KeyUnreadable(
                "A model's stored key cannot be read with this TRELLIS_SECRET_KEY; restore it or register the model again."
            ) from error
