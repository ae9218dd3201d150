"""LightRAG's log lines reach the process's log without what they are about."""

import logging

import asyncpg
import pytest
from lightrag.utils import logger

from app.retrieval.lightrag.pool import EngineDatabase, engine_workspace

SECRET = "sk-secret of Project Quartz"


async def test_a_failing_statement_is_logged_without_its_text_and_data(
    pool: EngineDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    with engine_workspace("w_log"), pytest.raises(asyncpg.UndefinedTableError):
        await pool.execute(f"INSERT INTO nowhere VALUES ($1) -- {SECRET}", {"text": SECRET})
    records = [record for record in caplog.records if record.name == "lightrag"]
    assert [record.levelname for record in records] == ["ERROR"]
    assert "UndefinedTableError in postgres_impl.execute" in caplog.text
    assert SECRET not in caplog.text


async def test_tracebacks_and_arguments_are_left_out(pool: EngineDatabase, caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        logger.exception("query %s", SECRET, stack_info=True)
    assert "ValueError" in caplog.text
    assert "Quartz" not in caplog.text


async def test_chatter_is_dropped_and_nothing_is_printed_past_the_log(
    pool: EngineDatabase, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG, logger=""):
        logger.info("keywords: %s", SECRET)
        logger.debug("keywords: %s", SECRET)
    assert SECRET not in caplog.text
    assert capsys.readouterr() == ("", "")
