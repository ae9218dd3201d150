"""Encrypts the keys of model providers at rest."""

from pydantic import SecretStr

from app.domain.secret_box import SecretBox, SecretUnreadable
from app.errors import Unavailable


class KeyUnreadable(Unavailable):
    """The stored key was encrypted under another TRELLIS_SECRET_KEY."""

    code = "model_key_unreadable"
    title = "The model's key cannot be read"


class KeyBox:
    def __init__(self, secret_key: SecretStr) -> None:
        self._box = SecretBox(secret_key, "trellis model provider keys")

    def encrypt(self, key: SecretStr) -> bytes:
        return self._box.encrypt(key.get_secret_value().encode())

    def renew(self, encrypted: bytes) -> bytes:
        """The same under the first secret. Raises `KeyUnreadable`."""
        return self.encrypt(self.decrypt(encrypted))

    def decrypt(self, encrypted: bytes) -> SecretStr:
        """Raises `KeyUnreadable`."""
        try:
            return SecretStr(self._box.decrypt(encrypted).decode())
        except SecretUnreadable as error:
            raise KeyUnreadable(
                "A model's stored key cannot be read with this TRELLIS_SECRET_KEY; restore it or register the model again."
            ) from error
