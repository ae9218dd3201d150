"""The usage ledger: append-only."""

from uuid import UUID

from sqlalchemy import select

from app.db.models import ModelProfile, UsageEvent
from app.db.repository import TenantRepository
from app.providers.usage import UsageMeter


class UsageLedger(TenantRepository):
    """Rows of one tenant."""

    async def add(
        self, meter: UsageMeter, workspace_id: UUID, *, document_id: UUID | None = None, version_id: UUID | None = None
    ) -> None:
        """One row per model and purpose; a model that was removed in the meantime cannot be billed any more."""
        used = {profile.id for profile, _ in meter.totals}
        known = set(await self.session.scalars(select(ModelProfile.id).where(ModelProfile.id.in_(used))))
        self.session.add_all(
            UsageEvent(
                tenant_id=self.session.tenant_id,
                workspace_id=workspace_id,
                document_id=document_id,
                version_id=version_id,
                profile_id=profile.id,
                purpose=purpose.value,
                calls=total.calls,
                tokens_in=total.tokens_in,
                tokens_out=total.tokens_out,
                is_estimated=total.is_estimated,
            )
            for (profile, purpose), total in meter.totals.items()
            if profile.id in known
        )
        await self.session.flush()
