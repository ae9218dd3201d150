"""Embeddings over a real HTTP endpoint: shape, order, batches and checks."""

import numpy as np
import pytest

from app.providers.contract import EmbeddingMismatch, ModelUnavailable, Purpose
from app.providers.factory import ModelFactory
from app.providers.usage import meter_usage
from tests.fakes.stub_process import StubServer
from tests.fakes.stub_replies import embed
from tests.providers.profiles import embedding_profile


async def test_vectors_come_normalised_in_the_order_of_the_texts(stub_llm: StubServer, factory: ModelFactory) -> None:
    texts = [f"text number {number}" for number in range(100)]
    vectors = await factory.embedding(embedding_profile(stub_llm.base_url)).embed(texts, role="document")
    assert vectors.shape == (100, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [embed(text, 384) for text in texts], atol=1e-6)


async def test_many_texts_go_in_bounded_batches_and_are_all_counted(
    stub_llm: StubServer, factory: ModelFactory
) -> None:
    with meter_usage() as meter:
        await factory.embedding(embedding_profile(stub_llm.base_url)).embed(["some text"] * 70, role="document")
    assert stub_llm.stats()["calls"]["embed"] == 3
    assert meter.embedding_calls == 3
    assert meter.calls == 0
    assert {purpose for _, purpose in meter.totals} == {Purpose.EMBED_DOCUMENT}


async def test_blank_texts_are_zeros_and_are_not_sent(stub_llm: StubServer, factory: ModelFactory) -> None:
    embedding = factory.embedding(embedding_profile(stub_llm.base_url))
    vectors = await embedding.embed(["", "word", "  \n"], role="query")
    assert np.linalg.norm(vectors, axis=1).round(5).tolist() == [0.0, 1.0, 0.0]
    assert (await embedding.embed(["", " "], role="query")).shape == (2, 384)
    assert (await embedding.embed([], role="query")).shape == (0, 384)
    assert stub_llm.stats()["calls"]["embed"] == 1


async def test_wrong_dimension_names_both_numbers(stub_llm: StubServer, factory: ModelFactory) -> None:
    with pytest.raises(EmbeddingMismatch, match=r"384 dimensions, its profile says 512") as raised:
        await factory.embedding(embedding_profile(stub_llm.base_url, dimension=512)).embed(["text"], role="query")
    assert raised.value.facts["expected"] == 512
    assert raised.value.facts["received"] == 384


async def test_missing_vectors_name_both_numbers(stub_llm: StubServer, factory: ModelFactory) -> None:
    stub_llm.set_faults({"count": 2})
    with pytest.raises(EmbeddingMismatch, match="3 texts and gave 2 vectors"):
        await factory.embedding(embedding_profile(stub_llm.base_url)).embed(["a b", "c d", "e f"], role="query")


@pytest.mark.parametrize("page", ['{"object": "list", "data": []}', '{"error": "overloaded"}', "[]", "null", '"busy"'])
async def test_an_answer_without_vectors_may_be_asked_again(
    stub_llm: StubServer, factory: ModelFactory, page: str
) -> None:
    stub_llm.set_faults({"page": page})
    with pytest.raises(ModelUnavailable):
        await factory.embedding(embedding_profile(stub_llm.base_url)).embed(["a b"], role="query")


async def test_one_failed_batch_fails_the_whole(stub_llm: StubServer, factory: ModelFactory) -> None:
    stub_llm.set_faults({"match": "poison", "status": 503})
    with pytest.raises(ModelUnavailable):
        await factory.embedding(embedding_profile(stub_llm.base_url)).embed(["text"] * 40 + ["poison"], role="document")
