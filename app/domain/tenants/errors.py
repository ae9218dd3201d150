"""Why something cannot be done with a tenant."""

from app.errors import NotFound


class TenantNotFound(NotFound):
    """There is no such tenant."""

    code = "tenant_not_found"
    title = "Tenant not found"
