import pytest

from tests.factories import Tenancy
from tests.retrieval.corpora import Corpus


@pytest.fixture
async def corpus(tenancy: Tenancy) -> Corpus:
    """An empty workspace of a new tenant."""
    return await Corpus.create(tenancy)


@pytest.fixture
async def other_corpus(other_tenancy: Tenancy) -> Corpus:
    """An empty workspace of another tenant."""
    return await Corpus.create(other_tenancy)
