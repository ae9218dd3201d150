"""What is as near, or as well connected, comes in the order of its name, in whatever order it was written."""

import numpy as np
import pytest

from app.providers.contract import Vectors
from app.retrieval.lightrag.index import GraphWriter
from app.retrieval.lightrag.pool import EngineDatabase, inside
from app.retrieval.lightrag.search_store import GraphReader
from tests.retrieval.lightrag.doubles import DIMENSION, Corpus, WordEmbedding, ignore

NAMES = ["Amber Mill", "Birch Quay", "Cedar Row", "Delta Pier", "Ember Lock"]
FEW = 3


class SameEmbedding(WordEmbedding):
    """Nothing is nearer than anything else."""

    def vector(self, found: str) -> Vectors:
        return np.ones(DIMENSION, dtype=np.float32)


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1]])
@pytest.mark.parametrize("is_filtered", [False, True])
async def test_names_break_ties(
    corpus: Corpus, index: GraphWriter, pool: EngineDatabase, order: list[str], is_filtered: bool
) -> None:
    object.__setattr__(corpus.workspace, "embedding", SameEmbedding())
    versions = []
    for name in order:
        version = await corpus.add(f"{name} lies near Zeta Harbor.")
        await index.extract(corpus.workspace, version, ignore)
        await index.insert(corpus.workspace, version, corpus.lease)
        await corpus.trust(version)
        versions.append(version.version_id)
    reader = GraphReader(
        pool, corpus.workspace.ref, corpus.workspace.vector_suffix, allowed=versions if is_filtered else None
    )
    same = np.ones(DIMENSION, dtype=np.float32)
    with inside(corpus.workspace.ref):
        entities = await reader.nearest_entities(same, FEW)
        relations = await reader.nearest_relations(same, FEW)
        around = await reader.relations_of(["Zeta Harbor"], FEW)
        chunks = await reader.nearest_chunks(same, len(NAMES))
    assert [row["entity_name"] for row in entities] == NAMES[:FEW]
    assert [sorted((row["src_id"], row["tgt_id"]))[0] for row in relations] == NAMES[:FEW]
    assert [row["src_id"] for row in around] == NAMES[:FEW]
    assert chunks == sorted(chunks)
