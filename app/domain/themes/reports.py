"""Has reports of themes written by the workspace's chat model, where the workspace wants it, and finds them again.

A report belongs to what the passages of a theme say, not to the theme: an unchanged community is never paid for twice, and one
that has changed has no report until it is asked for again.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from app.db.base import TenantId, WorkspaceId
from app.db.models import ThemeReport
from app.db.session import Database
from app.domain.limits.repository import LimitsRepository
from app.domain.queries.errors import ChatModelMissing
from app.domain.queries.service import refuse_spent
from app.domain.themes.report_repository import ThemeReportRepository
from app.domain.themes.reporting import MAX_TOKENS, Report, messages_for, quoted_report, read_report
from app.domain.usage.booking import book_query
from app.domain.workspaces.opening import WorkspaceOpener
from app.domain.workspaces.repository import WorkspaceRepository
from app.domain.workspaces.service import refuse_deleting
from app.domain.workspaces.settings import WorkspaceSettings
from app.errors import Conflict, TimedOut
from app.providers.answers import check_text
from app.providers.contract import ChatModel, Purpose
from app.providers.usage import meter_usage
from app.retrieval.themes.browsing import ReportMaterial, ThemeBrowser

Place = tuple[TenantId, WorkspaceId]
MAX_SECONDS: Final = 120.0


class ThemeReportsOff(Conflict):
    """Reports cost calls of a chat model, so a workspace has to want them."""

    code = "theme_reports_off"
    title = "The workspace has no reports of themes"


class ThemeReportTimedOut(TimedOut):
    """The chat model took longer than a caller should wait; what it took is booked."""

    code = "theme_report_timed_out"
    title = "Writing the report took too long"


class ThemeChanged(Conflict):
    """A document of the theme was removed while its report was being written."""

    code = "theme_changed"
    title = "The theme has changed meanwhile"


@dataclass(frozen=True)
class WrittenReport:
    """A report, and whether it was there already."""

    title: str
    summary: str
    model: str
    is_extractive: bool
    created_at: datetime
    is_cached: bool

    @classmethod
    def of(cls, row: ThemeReport, *, is_cached: bool = True) -> "WrittenReport":
        return cls(row.title, row.summary, row.model, row.is_extractive, row.created_at, is_cached)


class ThemeReports:
    # Whoever asks this process for a report that it is having written waits for that one.
    _writing: ClassVar[WeakValueDictionary[tuple[UUID, bytes], asyncio.Lock]] = WeakValueDictionary()

    def __init__(self, database: Database, workspaces: WorkspaceOpener, browser: ThemeBrowser) -> None:
        self._database = database
        self._workspaces = workspaces
        self._browser = browser

    async def find(self, place: Place, content_hash: bytes) -> WrittenReport | None:
        """The report of this content, if there is one."""
        async with self._database.tenant(place[0]) as session:
            row = await ThemeReportRepository(session).find(place[1], content_hash)
        return None if row is None else WrittenReport.of(row)

    async def write(self, place: Place, theme_id: UUID) -> WrittenReport:
        """The report of a theme as it is now; no transaction is open while the model is asked.

        Raises WorkspaceNotFound, WorkspaceDeleting, ThemeReportsOff, ThemeNotFound, ChatModelMissing, QuotaExceeded, what
        the model raises, ThemeReportTimedOut, or ThemeChanged.
        """
        async with self._database.tenant(place[0]) as session:
            record = await WorkspaceRepository(session).get(place[1])
            standing = await LimitsRepository(session).standing()
        refuse_deleting(record.row)
        if not WorkspaceSettings.stored(record.row.settings).theme_reports:
            raise ThemeReportsOff("Set theme_reports of the workspace to have reports written.", workspace_id=place[1])
        workspace = await self._workspaces.engine_workspace(record)
        material = await self._browser.material(workspace, theme_id)
        async with self._writing.setdefault((place[1], material.content_hash), asyncio.Lock()):
            known = await self.find(place, material.content_hash)
            if known is not None:
                return known
            if workspace.chat is None:
                raise ChatModelMissing("Reports are written by a chat model, and this workspace has none.")
            refuse_spent(standing, workspace.chat.profile)
            return await self._write(place, workspace.chat, material)

    async def _write(self, place: Place, chat: ChatModel, material: ReportMaterial) -> WrittenReport:
        is_extractive = chat.profile.is_offline
        with meter_usage() as meter:
            try:
                report = quoted_report(material) if is_extractive else await _asked(chat, material)
            finally:
                await book_query(self._database, *place, uuid4(), meter)
        async with self._database.tenant(place[0]) as session:
            reports = ThemeReportRepository(session)
            await reports.add(
                place[1],
                material.content_hash,
                material.versions,
                title=report.title,
                summary=report.summary,
                model=chat.profile.name,
                is_extractive=is_extractive,
            )
            row = await reports.find(place[1], material.content_hash)
        if row is None:
            raise ThemeChanged("A document of the theme was removed meanwhile; ask again.")
        return WrittenReport.of(row, is_cached=False)


async def _asked(chat: ChatModel, material: ReportMaterial) -> Report:
    limit = asyncio.timeout(MAX_SECONDS)
    try:
        async with limit:
            reply = await chat.complete(messages_for(material), purpose=Purpose.REPORT, max_tokens=MAX_TOKENS)
    except TimeoutError:
        if limit.expired():
            raise ThemeReportTimedOut(f"The model had {MAX_SECONDS:g} seconds; ask again later.") from None
        raise
    return read_report(check_text(reply.text, reply.finish_reason))
