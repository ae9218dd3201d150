"""Why something cannot be done with a tenant."""

from app.errors import Forbidden, NotFound, Unauthenticated


class TenantNotFound(NotFound):
    """There is no such tenant."""

    code = "tenant_not_found"
    title = "Tenant not found"


class InvalidApiKey(Unauthenticated):
    """One answer for a missing, malformed, unknown, expired or revoked key or token: it tells a stranger nothing."""

    code = "invalid_api_key"
    title = "The API key is not valid"


class TenantSuspended(Forbidden):
    """The operator has suspended the tenant."""

    code = "tenant_suspended"
    title = "The tenant is suspended"


class TokenNotMapped(Forbidden):
    """The token is valid, but names no tenant and role of this installation."""

    code = "token_not_mapped"
    title = "The token is for no tenant here"
