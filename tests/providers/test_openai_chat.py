"""Chat over a real HTTP endpoint: usage, retries, and every failure as an error of ours."""

import asyncio
import socket
from dataclasses import replace

import pytest
from pydantic import SecretStr

from app.providers.contract import ChatMessage, ModelRefused, ModelRejected, ModelUnavailable, Purpose
from app.providers.factory import ModelFactory
from app.providers.usage import meter_usage
from tests.fakes.receiver import open_receiver
from tests.fakes.stub_process import StubServer, run_stub
from tests.providers.profiles import chat_profile

HELLO = [ChatMessage("system", "Be brief."), ChatMessage("user", "Hello there, model.")]


async def test_reply_carries_text_usage_and_reason_to_stop(stub_llm: StubServer, factory: ModelFactory) -> None:
    with meter_usage() as meter:
        reply = await factory.chat(chat_profile(stub_llm.base_url)).complete(HELLO, purpose=Purpose.ANSWER)
    assert reply.text.startswith("Stub answer")
    assert reply.finish_reason == "stop"
    assert not reply.is_estimated
    assert (meter.calls, meter.tokens_in, meter.tokens_out) == (1, reply.tokens_in, reply.tokens_out)
    assert [purpose for _, purpose in meter.totals] == [Purpose.ANSWER]


async def test_usage_is_estimated_where_the_endpoint_reports_none(redis: object, factory: ModelFactory) -> None:
    with run_stub("--no-usage") as stub, meter_usage() as meter:
        reply = await factory.chat(chat_profile(stub.base_url)).complete(HELLO, purpose=Purpose.ANSWER)
    assert reply.is_estimated
    assert reply.tokens_in > 5
    assert reply.tokens_out > 3
    assert next(iter(meter.totals.values())).is_estimated


async def test_failed_call_is_not_counted(stub_llm: StubServer, factory: ModelFactory) -> None:
    stub_llm.set_faults({"status": 500})
    with meter_usage() as meter, pytest.raises(ModelUnavailable):
        await factory.chat(chat_profile(stub_llm.base_url)).complete(HELLO, purpose=Purpose.ANSWER)
    assert meter.calls == 0


async def test_a_call_that_is_cut_off_is_counted_as_an_estimate(stub_llm: StubServer, factory: ModelFactory) -> None:
    stub_llm.set_faults({"delay_ms": 3000, "times": 2})
    chat = factory.chat(chat_profile(stub_llm.base_url, timeout_seconds=0.3, max_retries=1))
    with meter_usage() as meter, pytest.raises(ModelUnavailable):
        await chat.complete(HELLO, purpose=Purpose.EXTRACT)
    # Both were sent and may be billed, the one that the client repeated by itself too.
    assert (meter.calls, meter.estimated_calls, meter.tokens_out) == (2, 2, 0)
    assert meter.tokens_in > 10


async def test_a_call_that_is_cancelled_is_counted_as_an_estimate(stub_llm: StubServer, factory: ModelFactory) -> None:
    stub_llm.set_faults({"delay_ms": 3000})
    chat = factory.chat(chat_profile(stub_llm.base_url))
    with meter_usage() as meter:
        call = asyncio.create_task(chat.complete(HELLO, purpose=Purpose.EXTRACT))
        while not stub_llm.stats()["calls"]:  # noqa: ASYNC110 - another process is waited for
            await asyncio.sleep(0.02)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert (meter.calls, meter.estimated_calls) == (1, 1)


async def test_a_stream_that_is_left_is_counted_with_what_was_said(stub_llm: StubServer, factory: ModelFactory) -> None:
    chat = factory.chat(chat_profile(stub_llm.base_url))
    with meter_usage() as meter:
        stream = chat.stream(HELLO, purpose=Purpose.ANSWER)
        async for _ in stream:
            break
        await stream.aclose()
    assert (meter.calls, meter.estimated_calls) == (1, 1)
    assert meter.tokens_out > 0


async def test_a_call_that_was_never_sent_is_not_counted(factory: ModelFactory) -> None:
    with meter_usage() as meter, pytest.raises(ModelUnavailable):
        await factory.chat(chat_profile("http://127.0.0.1:1/v1")).complete(HELLO, purpose=Purpose.ANSWER)
    assert meter.calls == 0


async def test_nested_meters_both_count(stub_llm: StubServer, factory: ModelFactory) -> None:
    with meter_usage() as outer, meter_usage() as inner:
        await factory.chat(chat_profile(stub_llm.base_url)).complete(HELLO, purpose=Purpose.EXTRACT)
    assert (outer.calls, inner.calls) == (1, 1)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_passing_failures_are_retried(stub_llm: StubServer, factory: ModelFactory, status: int) -> None:
    stub_llm.set_faults({"status": status, "times": 2, "headers": {"Retry-After": "0.01"}})
    reply = await factory.chat(chat_profile(stub_llm.base_url, max_retries=2)).complete(HELLO, purpose=Purpose.ANSWER)
    assert reply.text
    assert stub_llm.stats()["calls"]["answer"] == 3


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
async def test_failure_that_stays_is_unavailable_with_its_status(
    stub_llm: StubServer, factory: ModelFactory, status: int
) -> None:
    stub_llm.set_faults({"status": status, "times": 9})
    with pytest.raises(ModelUnavailable, match=str(status)) as raised:
        await factory.chat(chat_profile(stub_llm.base_url)).complete(HELLO, purpose=Purpose.ANSWER)
    assert raised.value.facts["status"] == status
    assert raised.value.reason == "model_unavailable"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_retrying_cannot_help_is_rejected_at_once(
    stub_llm: StubServer, factory: ModelFactory, status: int
) -> None:
    stub_llm.set_faults({"status": status, "times": 9})
    with pytest.raises(ModelRejected) as raised:
        await factory.chat(chat_profile(stub_llm.base_url, max_retries=3)).complete(HELLO, purpose=Purpose.ANSWER)
    assert raised.value.facts["status"] == status
    assert stub_llm.stats()["calls"]["answer"] == 1


async def test_spent_quota_is_rejected_although_it_is_a_429(stub_llm: StubServer, factory: ModelFactory) -> None:
    stub_llm.set_faults({"status": 429, "code": "insufficient_quota", "times": 9})
    with pytest.raises(ModelRejected):
        await factory.chat(chat_profile(stub_llm.base_url)).complete(HELLO, purpose=Purpose.ANSWER)


async def test_error_about_a_bad_key_does_not_repeat_the_key(factory: ModelFactory) -> None:
    with run_stub("--api-key", "right") as stub:
        profile = chat_profile(stub.base_url, api_key=SecretStr("topsecretvalue"))
        with pytest.raises(ModelRejected, match="Incorrect API key") as raised:
            await factory.chat(profile).complete(HELLO, purpose=Purpose.ANSWER)
        right = replace(profile, api_key=SecretStr("right"))
        assert (await factory.chat(right).complete(HELLO, purpose=Purpose.ANSWER)).text
    assert "topsecret" not in str(raised.value)
    assert "topsecret" not in repr(profile)


async def test_slow_answer_is_unavailable(factory: ModelFactory) -> None:
    # A stub of its own: the call that is given up goes on in the server.
    with run_stub("--llm-ms", "1000") as stub, pytest.raises(ModelUnavailable, match=r"within 0\.2 seconds"):
        await factory.chat(chat_profile(stub.base_url, timeout_seconds=0.2)).complete(HELLO, purpose=Purpose.ANSWER)


async def test_endpoint_that_is_not_there_is_unavailable(factory: ModelFactory) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        profile = chat_profile(f"http://127.0.0.1:{held.getsockname()[1]}/v1")
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            await factory.chat(profile).complete(HELLO, purpose=Purpose.ANSWER)


@pytest.mark.parametrize(
    "page", ["\n\n\n", "<html>busy</html>", '{"error": {"message": "overloaded"}}', '{"choices": []}']
)
async def test_page_that_is_no_answer_is_unavailable(stub_llm: StubServer, factory: ModelFactory, page: str) -> None:
    stub_llm.set_faults({"page": page})
    with pytest.raises(ModelUnavailable):
        await factory.chat(chat_profile(stub_llm.base_url)).complete(HELLO, purpose=Purpose.ANSWER)


async def test_refusal_by_the_provider_is_an_error_and_is_paid_for(stub_llm: StubServer, factory: ModelFactory) -> None:
    stub_llm.set_faults({"body": "", "refusal": "I cannot."}, {"body": "", "finish_reason": "content_filter"})
    chat = factory.chat(chat_profile(stub_llm.base_url))
    with meter_usage() as meter:
        for _ in range(2):
            with pytest.raises(ModelRefused):
                await chat.complete(HELLO, purpose=Purpose.ANSWER)
    assert meter.calls == 2


async def test_server_without_json_mode_is_asked_without_it(stub_llm: StubServer, factory: ModelFactory) -> None:
    message = "'response_format.type' must be 'json_schema' or 'text'"
    stub_llm.set_faults({"status": 400, "message": message})
    chat = factory.chat(chat_profile(stub_llm.base_url))
    for _ in range(2):
        assert (await chat.complete(HELLO, purpose=Purpose.KEYWORDS, json_mode=True)).text
    # Refused once, asked again, and the second call does not try JSON mode again.
    assert stub_llm.stats()["calls"]["answer"] == 3


async def test_server_that_renamed_the_limit_is_asked_by_its_name(stub_llm: StubServer, factory: ModelFactory) -> None:
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    stub_llm.set_faults({"status": 400, "message": message})
    reply = await factory.chat(chat_profile(stub_llm.base_url)).complete(HELLO, purpose=Purpose.ANSWER, max_tokens=50)
    assert reply.text
    assert stub_llm.stats()["calls"]["answer"] == 2


async def test_stream_arrives_in_pieces_and_is_counted(stub_llm: StubServer, factory: ModelFactory) -> None:
    stub_llm.set_faults({"body": "word " * 100})
    with meter_usage() as meter:
        chat = factory.chat(chat_profile(stub_llm.base_url))
        pieces = [piece async for piece in chat.stream(HELLO, purpose=Purpose.ANSWER)]
    assert len(pieces) > 3
    assert "".join(pieces) == "word " * 100
    assert meter.tokens_out == len("word " * 100) // 4


@pytest.mark.parametrize("status", [302, 307])
async def test_a_redirect_carries_no_document_elsewhere(factory: ModelFactory, status: int) -> None:
    async with open_receiver() as receiver:
        receiver.answers = [status]
        with pytest.raises(ModelRejected) as raised:
            await factory.chat(chat_profile(f"{receiver.url}/v1")).complete(HELLO, purpose=Purpose.ANSWER)
    assert raised.value.facts["status"] == status
    assert len(receiver.received) == 1
