"""A model as judge: what it says is counted only where it can be read."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from app.providers.contract import ModelProfile
from app.providers.factory import ModelFactory
from app.retrieval.contract import PassageEvidence
from bench.judge import Judge, Marks, read_marks
from tests.fakes.stub_process import StubServer

PASSAGE = PassageEvidence(1, uuid4(), uuid4(), "Radium", "", 0, "Marie Curie found it.", None, None, 0, 21, (), 1.0)


@pytest.mark.parametrize(
    ("reply", "marks"),
    [
        ('{"faithfulness": 1, "relevance": 0.5}', Marks(1.0, 0.5)),
        ('Here you are:\n```json\n{"relevance": 0, "faithfulness": 0.25}\n```', Marks(0.25, 0.0)),
        ('{"faithfulness": 1}', None),
        ('{"faithfulness": 7, "relevance": 0.5}', None),
        ('{"faithfulness": "high", "relevance": 0.5}', None),
        ("{faithfulness}", None),
        ("I cannot say.", None),
    ],
)
def test_marks_are_read_or_left_out(reply: str, marks: Marks | None) -> None:
    assert read_marks(reply) == marks


@pytest.fixture
async def judge(stub_server: StubServer, redis_url: str) -> AsyncIterator[Judge]:
    redis = Redis.from_url(redis_url)
    models = ModelFactory(redis)
    profile = ModelProfile(uuid4(), "judge", "chat", "openai", "stub", stub_server.base_url, max_retries=0)
    yield Judge(models.chat(profile))
    await models.aclose()
    await redis.aclose()


async def test_coverage_tells_how_many_replies_could_be_read(judge: Judge, stub_server: StubServer) -> None:
    stub_server.set_faults(
        {"match": "Who? 1", "kind": "answer", "status": 400, "times": 100},
        {"match": "Reply with JSON", "body": '{"faithfulness": 0.75, "relevance": 0.5}', "times": 2},
    )
    found = await judge.judge([(f"Who? {number}", [PASSAGE]) for number in range(4)])
    assert found.asked == 4
    assert found.coverage == 0.5
    assert found.mean("faithfulness") == 0.75
    assert found.mean("relevance") == 0.5
    stub_server.reset()


async def test_a_judge_that_says_nothing_usable_has_no_mean(judge: Judge, stub_server: StubServer) -> None:
    stub_server.reset()
    found = await judge.judge([("Who?", [PASSAGE])])
    assert found.coverage == 0
    assert found.mean("faithfulness") is None
