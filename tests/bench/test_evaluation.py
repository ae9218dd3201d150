"""The evaluation through the product's own index and query path, on the extract that the project ships."""

from pathlib import Path

import pytest

from app.db.session import Database
from app.domain.models.service import ModelProfiles
from app.providers.offline.embeddings import OfflineEmbeddings
from app.settings import Settings
from bench.corpus import index_set
from bench.datasets import as_long_documents, read_sets
from bench.embeddings import CachedEmbedding
from bench.evaluation import evaluate

DATA = Path("tests/data/retrieval")


@pytest.fixture
async def embedding(owner_database: Database, settings: Settings, tmp_path: Path) -> CachedEmbedding:
    profile = await ModelProfiles(owner_database, settings.secret_key).get_by_name("offline-wordllama")
    return CachedEmbedding(OfflineEmbeddings(profile), tmp_path / "embeddings.sqlite")


async def test_lazy_beats_every_plain_ranking_on_questions_of_several_hops(
    owner_database: Database, database: Database, embedding: CachedEmbedding
) -> None:
    (wiki,) = read_sets(DATA, ["2wiki_context"], None)
    indexed = await index_set(owner_database, database, embedding, wiki)
    found = await evaluate(
        database, indexed, wiki, ["bm25", "vectors", "rrf", "showcase", "baseline", "lazy-balanced", "mix"]
    )
    recall = {mode: result.mean("R@5") for mode, result in found.modes.items()}
    assert (
        recall["lazy-balanced"]
        >= max(recall[mode] for mode in ("bm25", "vectors", "rrf", "showcase", "baseline")) + 0.1
    )
    assert set(found.failures) == {"mix"}
    await embedding.aclose()


async def test_passages_of_long_documents_stand_for_the_passages_of_the_set(
    owner_database: Database, database: Database, embedding: CachedEmbedding
) -> None:
    (wiki,) = read_sets(DATA, ["2wiki_context"], 8)
    joined = as_long_documents(wiki)
    indexed = await index_set(owner_database, database, embedding, joined)
    found = await evaluate(database, indexed, joined, ["bm25"])
    assert found.modes["bm25"].mean("R@10") > 0.4
    await embedding.aclose()
