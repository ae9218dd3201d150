import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import text

from app.aside import RunAside
from app.domain.themes.refreshing import ThemeRefreshing
from app.jobs import RefreshThemes
from app.retrieval.contract import WorkspaceRef
from app.retrieval.themes import store
from app.retrieval.themes.browsing import ThemeBrowser
from app.retrieval.themes.store import ThemeMapFacts
from app.settings import Settings
from tests.factories import Tenancy
from tests.retrieval.corpora import Corpus, Stored

HARBOUR = (
    "The Tideline Sensors of the Port of Qingdao measure the swell at Pier Seven.",
    "Harbour Master Wei Lan had the Tideline Sensors calibrated before the ice reached Pier Seven.",
    "Pier Seven belongs to the Port of Qingdao, and Wei Lan signs for each of its Tideline Sensors.",
    "Nobody but Wei Lan may close Pier Seven when the Tideline Sensors report swell.",
    "The Port of Qingdao bought more Tideline Sensors after the storm that hit Pier Seven.",
)
VINEYARD = (
    "At Château Belmont the Syrah grapes ripen late, says cellar master Odile Garnier.",
    "Odile Garnier blends Syrah with Grenache in the old cellar of Château Belmont.",
    "The slopes of Château Belmont lie in the Rhone Valley, where Syrah and Grenache grow.",
    "Grenache of the Rhone Valley was sold by Odile Garnier to merchants who came to Château Belmont.",
    "Odile Garnier keeps the first Syrah that the Rhone Valley gave to Château Belmont.",
)
OBSERVATORY = (
    "Астроном Ирина Соколова открыла комету Северная Лира в обсерватории Пулково.",
    "Обсерватория Пулково наблюдает комету Северная Лира, и Ирина Соколова ведёт журнал.",
    "Комета Северная Лира названа так, потому что Ирина Соколова увидела её из Пулково.",
    "Журнал обсерватории Пулково хранит снимки, на которых Ирина Соколова нашла комету Северная Лира.",
    "Ирина Соколова рассказала в Пулково, как движется комета Северная Лира.",
)
TOPICS = (HARBOUR, VINEYARD, OBSERVATORY)


@asynccontextmanager
async def in_a_thread() -> AsyncIterator[RunAside]:
    """A process for each build would take most of a test's time."""
    yield asyncio.to_thread


class Themes:
    """A workspace whose themes a test has built."""

    def __init__(self, corpus: Corpus, settings: Settings) -> None:
        self.corpus = corpus
        small = settings.model_copy(update={"themes_min_passages": 6})
        self.settings = small
        self.refreshing = ThemeRefreshing(corpus.database, small, in_a_thread)

    def sampled(self, passages: int) -> None:
        """From now on at most about so many passages are read."""
        self.changed(themes_max_passages=passages)

    def changed(self, **values: float) -> None:
        """From now on these settings are used."""
        settings = self.settings.model_copy(update=values)
        self.refreshing = ThemeRefreshing(self.corpus.database, settings, in_a_thread)

    @property
    def ref(self) -> WorkspaceRef:
        return self.corpus.ref

    async def fill(self, topics: Sequence[Sequence[str]] = TOPICS) -> list[list[Stored]]:
        """A document for each text; none has a title that would give its topic away."""
        return [[await self.add(text) for text in topic] for topic in topics]

    async def add(self, text: str) -> Stored:
        stored = await self.corpus.add("", text)
        await self.moved()
        return stored

    async def moved(self) -> None:
        await self.corpus.change(
            "UPDATE corpus_versions SET version = version + 1 WHERE workspace_id = :id", id=self.ref.workspace_id
        )

    async def refresh(self) -> None:
        await self.refreshing.run(RefreshThemes(self.ref.tenant_id, self.ref.workspace_id))

    async def ask(self) -> None:
        await self.refreshing.ask(self.ref.tenant_id, self.ref.workspace_id)

    async def found(self) -> ThemeMapFacts:
        async with self.corpus.database.snapshot(self.ref.tenant_id) as session:
            found = await store.find_map(session, self.ref)
        assert found is not None
        return found

    async def leaves(self) -> dict[int, str]:
        """The theme of each passage, by id."""
        rows = await self.rows("SELECT passage_id, theme_id FROM theme_passages ORDER BY 1")
        return {row[0]: str(row[1]) for row in rows}

    async def tops(self) -> dict[int, str]:
        """The theme of level 0 of each passage."""
        rows = await self.rows("""
            SELECT p.passage_id, top.id FROM theme_passages p
              JOIN themes leaf ON leaf.map_id = p.map_id AND leaf.id = p.theme_id
              JOIN themes top ON top.map_id = p.map_id AND top.level = 0
                             AND leaf.first_leaf BETWEEN top.first_leaf AND top.last_leaf""")
        return {row[0]: str(row[1]) for row in rows}

    async def rows(self, statement: str) -> Sequence[Any]:
        async with self.corpus.database.tenant(self.ref.tenant_id) as session:
            return (await session.execute(text(statement))).all()

    async def labels(self) -> dict[str, list[str]]:
        """The terms of the labels of all themes that are told, by id."""
        browser, workspace = ThemeBrowser(self.corpus.database), self.corpus.workspace
        pages = [
            await browser.list(workspace, level=level, after=None, limit=50)
            for level in range((await self.found()).levels)
        ]
        return {str(theme.id): theme.label.split(", ") for page in pages for theme in page.themes}


@pytest.fixture
async def themes(tenancy: Tenancy, settings: Settings) -> Themes:
    """An empty workspace of a new tenant, which has themes from six passages on."""
    return Themes(await Corpus.create(tenancy), settings)


@pytest.fixture
async def other_themes(other_tenancy: Tenancy, settings: Settings) -> Themes:
    """The same of another tenant."""
    return Themes(await Corpus.create(other_tenancy), settings)
