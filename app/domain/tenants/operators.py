"""Who may act as an operator over HTTP: whoever has the secret of the installation, where it has one."""

import hmac
from hashlib import sha256

from pydantic import SecretStr

from app.errors import Unauthenticated


class InvalidOperatorSecret(Unauthenticated):
    """The operator's secret is missing or wrong, or this installation has none."""

    code = "invalid_operator_secret"
    title = "The operator's secret is not valid"


def verify_operator(presented: str, secret: SecretStr | None) -> None:
    """Raises InvalidOperatorSecret."""
    if not matches_secret(presented, secret):
        raise InvalidOperatorSecret("Send the operator's secret as `Authorization: Bearer …`.")


def matches_secret(presented: str, secret: SecretStr | None) -> bool:
    """Takes the same time whatever is presented; nothing matches where there is no secret."""
    expected = secret.get_secret_value() if secret is not None else ""
    # Digests have one length, so that nothing can be told from how long the comparison takes.
    matches = hmac.compare_digest(
        sha256(presented.encode(errors="surrogatepass")).digest(), sha256(expected.encode()).digest()
    )
    return matches and bool(expected)
