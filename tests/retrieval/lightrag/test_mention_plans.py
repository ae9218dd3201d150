"""Mentions are found by the name at their other end without reading those of the whole workspace."""

import pytest
from sqlalchemy import text

from app.db.session import Database
from app.retrieval.lightrag.support_store import _MENTIONS_AS_END
from tests.retrieval.lightrag.doubles import Corpus

FILL = """
INSERT INTO mentions (tenant_id, workspace_id, version_id, chunk_ordinal, name, target, description, keywords)
SELECT :tenant, :workspace, :version, 0, 'Name ' || n, 'End ' || n, 'said', 'word' FROM generate_series(1, 3000) n
"""


@pytest.mark.usefixtures("pool")  # it makes the tables that the corpus writes to
async def test_an_index_finds_the_other_end(corpus: Corpus, owner_database: Database) -> None:
    version = await corpus.add("Some text.")
    ref = corpus.workspace.ref
    ids = (f"'{ref.workspace_id}'::uuid", f"'{ref.tenant_id}'::uuid")
    values = (*ids, "ARRAY['ready']", "ARRAY[md5('End 5')]", "NULL")
    # Without the versions that are trusted: of a tenant with a single one the planner begins there.
    asked = "SELECT m.id FROM mentions m " + _MENTIONS_AS_END[_MENTIONS_AS_END.index(" WHERE m.tenant_id") :]
    for number, value in enumerate(values, 1):
        asked = asked.replace(f"${number}", value)
    async with owner_database.system() as session:
        where = {"tenant": ref.tenant_id, "workspace": ref.workspace_id, "version": version.version_id}
        await session.execute(text(FILL), where)
        await session.execute(text("ANALYZE mentions"))
        plan = "\n".join(row[0] for row in await session.execute(text(f"EXPLAIN {asked}")))
        await session.rollback()
    assert "ix_mentions_target" in plan, plan
