"""The job of themes as a worker runs it: in a process of its own, when the sweeper or somebody asks for it."""

import pytest
from sqlalchemy import text

from app.bootstrap import Worker
from app.jobs import RefreshThemes
from tests.factories import Tenancy
from tests.retrieval.corpora import Corpus
from tests.retrieval.themes.conftest import TOPICS
from workers.task import attempt
from workers.tasks.ingestion import IN_TURNS

MAPS = "SELECT state, levels, passages FROM theme_maps"


@pytest.mark.timeout(120)
async def test_a_worker_builds_the_map_that_somebody_asked_for(worker: Worker, tenancy: Tenancy) -> None:
    corpus = await Corpus.create(tenancy)
    for found in [*TOPICS[0], *TOPICS[1], *TOPICS[2], *TOPICS[0], *TOPICS[1]]:
        await corpus.add("", found)
    job = RefreshThemes(corpus.ref.tenant_id, corpus.ref.workspace_id)
    await worker.container.theme_refreshing().ask(job.tenant_id, job.workspace_id)
    assert await attempt(worker.jobs, job, runs=1) is None
    async with corpus.database.tenant(job.tenant_id) as session:
        state, levels, passages = (await session.execute(text(MAPS))).one()
        asked = await session.scalar(text("SELECT are_themes_asked FROM corpus_versions"))
    assert (state, passages, asked) == ("ready", 25, False)
    assert levels >= 1
    figures = await worker.container.theme_refreshing().figures(job.tenant_id, job.workspace_id)
    assert figures is not None
    assert (figures["placed_since"], figures["changed_share"]) == (0, 0)


def test_building_themes_never_takes_the_last_slot() -> None:
    assert RefreshThemes in IN_TURNS
