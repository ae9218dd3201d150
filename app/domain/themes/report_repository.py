"""Queries about reports of themes."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import text

from app.db.models import ThemeReport
from app.db.repository import TenantRepository

# Nothing is written of a version that is being deleted, nor twice of one content.
_ADD = text("""
WITH source AS (
  SELECT v.id FROM versions v
    JOIN documents d ON d.tenant_id = v.tenant_id AND d.id = v.document_id AND d.deleting_at IS NULL
   WHERE v.tenant_id = :tenant_id AND v.id = ANY (CAST(:versions AS uuid[]))
     FOR KEY SHARE OF v
), report AS (
  INSERT INTO theme_reports (tenant_id, workspace_id, content_hash, title, summary, model, is_extractive)
  SELECT :tenant_id, :workspace_id, :content_hash, :title, :summary, :model, :is_extractive
   WHERE (SELECT count(*) FROM source) = cardinality(CAST(:versions AS uuid[]))
      ON CONFLICT (tenant_id, workspace_id, content_hash) DO NOTHING
  RETURNING id
)
INSERT INTO theme_report_sources (tenant_id, report_id, version_id)
SELECT :tenant_id, report.id, source.id FROM report, source
""")

# What a theme said before it changed is never asked for again.
_FORGET = text("""
DELETE FROM theme_reports r
 WHERE r.tenant_id = :tenant_id AND r.workspace_id = :workspace_id
   AND r.id IN (SELECT o.id FROM theme_reports o WHERE o.tenant_id = :tenant_id AND o.workspace_id = :workspace_id
                 ORDER BY o.created_at DESC, o.id OFFSET :kept)
""")
# More than anybody reads of one workspace.
KEPT: Final = 500


class ThemeReportRepository(TenantRepository):
    async def find(self, workspace_id: UUID, content_hash: bytes) -> ThemeReport | None:
        query = self.rows(
            ThemeReport, ThemeReport.workspace_id == workspace_id, ThemeReport.content_hash == content_hash
        )
        found: ThemeReport | None = await self.session.scalar(query)
        return found

    async def add(
        self,
        workspace_id: UUID,
        content_hash: bytes,
        versions: Sequence[UUID],
        *,
        title: str,
        summary: str,
        model: str,
        is_extractive: bool,
    ) -> None:
        """Writes nothing if one of the versions is gone, or if there is a report of this content. Only the newest `KEPT` of a
        workspace stay."""
        values = {
            "tenant_id": self.session.tenant_id,
            "workspace_id": workspace_id,
            "content_hash": content_hash,
            "versions": sorted(set(versions)),
            "title": title,
            "summary": summary,
            "model": model,
            "is_extractive": is_extractive,
        }
        await self.session.execute(_ADD, values)
        mine = {"tenant_id": self.session.tenant_id, "workspace_id": workspace_id}
        await self.session.execute(_FORGET, {**mine, "kept": KEPT})
