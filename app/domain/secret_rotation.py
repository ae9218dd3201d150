"""Brings all that is kept encrypted under the first secret of TRELLIS_SECRET_KEY, so that the others can be taken away."""

from dataclasses import dataclass

from pydantic import SecretStr

from app.db.base import TenantId
from app.db.session import Database
from app.domain.events.webhook_repository import WebhookRepository
from app.domain.events.webhooks import webhook_box
from app.domain.models.key_box import KeyBox
from app.domain.models.repository import ModelProfileRepository
from app.domain.tenants.service import TenantService


@dataclass(frozen=True)
class Renewed:
    """How many of each were encrypted anew."""

    model_keys: int
    webhook_secrets: int


async def renew_secrets(database: Database, secret_key: SecretStr) -> Renewed:
    """Encrypt keys of model profiles and secrets of webhooks anew. `database` is opened as the owner of the schema.

    A transaction for the profiles and one for each tenant; safe to repeat. Raises KeyUnreadable or SecretUnreadable where
    none of the secrets fits; what was done before stays done.
    """
    keys = KeyBox(secret_key)
    async with database.system() as session:
        profiles = [row for row in await ModelProfileRepository(session).list() if row.api_key_encrypted is not None]
        for row in profiles:
            row.api_key_encrypted = keys.renew(row.api_key_encrypted or b"")
    box, count = webhook_box(secret_key), 0
    for tenant in await TenantService(database).list_tenants():
        async with database.tenant(TenantId(tenant.id)) as session:
            webhooks = await WebhookRepository(session).of_tenant()
            for webhook in webhooks:
                webhook.key = box.renew(webhook.key)
            count += len(webhooks)
    return Renewed(len(profiles), count)
