"""The usage ledger: append-only."""

from uuid import UUID

from sqlalchemy import text

from app.db.repository import TenantRepository
from app.providers.usage import UsageMeter

_ADD = """
INSERT INTO usage_events (tenant_id, workspace_id, document_id, version_id, profile_id, purpose, calls, tokens_in,
                          tokens_out, is_estimated)
SELECT :tenant_id, :workspace_id, :document_id, :version_id, used.profile_id, used.purpose, used.calls, used.tokens_in,
       used.tokens_out, used.is_estimated
  FROM unnest(CAST(:profiles AS uuid[]), CAST(:purposes AS text[]), CAST(:calls AS int[]), CAST(:tokens_in AS bigint[]),
              CAST(:tokens_out AS bigint[]), CAST(:is_estimated AS boolean[]))
       AS used (profile_id, purpose, calls, tokens_in, tokens_out, is_estimated)
  JOIN model_profiles ON model_profiles.id = used.profile_id
"""


class UsageLedger(TenantRepository):
    """Rows of one tenant."""

    async def add(
        self, meter: UsageMeter, workspace_id: UUID, *, document_id: UUID | None = None, version_id: UUID | None = None
    ) -> None:
        """One row per model and purpose; a model that was removed in the meantime cannot be billed any more."""
        totals = list(meter.totals.items())
        await self.session.execute(
            text(_ADD),
            {
                "tenant_id": self.session.tenant_id,
                "workspace_id": workspace_id,
                "document_id": document_id,
                "version_id": version_id,
                "profiles": [profile.id for (profile, _), _ in totals],
                "purposes": [purpose.value for (_, purpose), _ in totals],
                "calls": [total.calls for _, total in totals],
                "tokens_in": [total.tokens_in for _, total in totals],
                "tokens_out": [total.tokens_out for _, total in totals],
                "is_estimated": [total.is_estimated for _, total in totals],
            },
        )
