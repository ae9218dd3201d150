"""The routes of OpenAI's chat interface: models are workspaces with a mode, and answers stand on their documents."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from app.api.connected import while_connected
from app.api.deps import ContainerDep, ReaderCaller
from app.api.idempotency import READS_ONLY
from app.api.problems import RequestTimeout, validation_problem
from app.api.v1.openai.documentation import openai_problems
from app.api.v1.openai.metadata import describe
from app.api.v1.openai.parameters import UnsupportedParameter
from app.api.v1.openai.schemas import (
    AnswerMessage,
    ChatCompletion,
    ChatCompletionRequest,
    Choice,
    ModelList,
    ModelRead,
    TokenUsage,
)
from app.api.v1.openai.streaming import Chunks, unix_time
from app.api.v1.queries.evidence import Citation
from app.api.v1.queries.router import QUERY_ERRORS
from app.api.v1.queries.schemas import Query
from app.bootstrap import Container
from app.db.counting import StatementCount, counting_statements
from app.domain.answering.errors import AnswerTimedOut, ChatModelMissing, ModelNameUnknown
from app.domain.answering.names import ModelName, NamedWorkspace, all_names, find_name
from app.domain.answering.repository import NamedWorkspaces
from app.domain.answering.service import AnswerService, Writing
from app.domain.tenants.records import Caller

router = APIRouter(prefix="/v1/openai", tags=["openai"])

NOT_IN_OPTIONS = ("query", "mode")
STREAM: dict[str, Any] = {
    "description": "The answer; with `stream` as chunks, the last of which has `citations` and `trellis`.",
    "content": {
        # What is said here would be taken for the schema of each event.
        "text/event-stream": {"schema": {}, "example": 'data: {"choices": […]}\n\ndata: [DONE]\n\n'}
    },
}


@router.get("/models", summary="List workspaces and modes as models", responses=openai_problems())
async def list_openai_models(caller: ReaderCaller, container: ContainerDep) -> ModelList:
    """One a workspace and mode. A key that is bound to a workspace sees that one's only."""
    return ModelList(data=[_model(name) for name in all_names(await _workspaces(container, caller))])


@router.get("/models/{model}", summary="Read one of them", responses=openai_problems(ModelNameUnknown))
async def read_openai_model(model: str, caller: ReaderCaller, container: ContainerDep) -> ModelRead:
    """By its name, or by `{workspace id}:{mode}`."""
    return _model(await _find(container, caller, model))


@router.post(
    "/chat/completions",
    summary="Answer the last message",
    openapi_extra=READS_ONLY,
    response_model=ChatCompletion,
    responses={
        200: STREAM,
        **openai_problems(
            ModelNameUnknown, UnsupportedParameter, ChatModelMissing, AnswerTimedOut, RequestTimeout, *QUERY_ERRORS
        ),
    },
)  # fmt: skip
async def complete_chat(
    wanted: ChatCompletionRequest, caller: ReaderCaller, container: ContainerDep, request: Request
) -> Response:
    """Looks for evidence on the last message of the user, and has the workspace's chat model answer from it."""
    with counting_statements() as statements:
        return await _complete(wanted, caller, container, request, statements)


async def _complete(
    wanted: ChatCompletionRequest, caller: Caller, container: Container, request: Request, statements: StatementCount
) -> Response:
    settings = container.settings
    conversation, wish = wanted.conversation(), wanted.wish(settings.answer_max_tokens)
    name = await _find(container, caller, wanted.model)
    query = _query(wanted, conversation.question, name.mode)
    service = AnswerService(
        container.database, container.queries(), container.workspaces, timeout_seconds=settings.answer_timeout_seconds
    )
    writing = await while_connected(
        request, service.find(caller.tenant_id, name.workspace, query.question(), conversation, wish)
    )
    head = {"id": f"chatcmpl-{writing.answer.query_id.hex}", "created": unix_time(), "model": wanted.model}

    async def last() -> dict[str, Any]:
        trellis = await describe(writing, container.index_sizes, statements)
        citations = Citation.of_all(writing.answer.context.cited, writing.workspace.ref.workspace_id)
        return {"usage": _usage(writing), "citations": citations, "trellis": trellis}

    if wanted.stream:
        chunks = Chunks(request, writing, head)
        await while_connected(request, chunks.begin())
        options = wanted.stream_options
        return StreamingResponse(
            chunks.frames(last, includes_usage=options is not None and bool(options.include_usage)),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    text = await while_connected(request, writing.whole())
    choice = Choice(message=AnswerMessage(content=text), finish_reason=writing.finish_reason)
    answer = ChatCompletion.model_validate({**head, "choices": [choice], **await last()})
    return Response(answer.model_dump_json(), media_type="application/json")


async def _workspaces(container: Container, caller: Caller, called: str | None = None) -> list[NamedWorkspace]:
    async with container.database.tenant(caller.tenant_id) as session:
        return await NamedWorkspaces(session).all(only=caller.workspace_id, called=called)


async def _find(container: Container, caller: Caller, model: str) -> ModelName:
    return find_name(model, await _workspaces(container, caller, model))


def _model(name: ModelName) -> ModelRead:
    workspace = name.workspace
    return ModelRead(
        id=str(name),
        created=int(workspace.created_at.timestamp()),
        name=f"{workspace.name} ({name.mode})",
        workspace_id=workspace.id,
        mode=name.mode,
        chat_model=workspace.chat_model,
    )


def _query(wanted: ChatCompletionRequest, question: str, mode: str) -> Query:
    """Raises ValidationFailed, in terms of this request's fields."""
    options = {key: value for key, value in (wanted.trellis or {}).items() if key != "footer"}
    wrong = [
        {"loc": ("body", "trellis", key), "msg": "is said by messages and model", "type": "extra_forbidden"}
        for key in NOT_IN_OPTIONS
        if key in options
    ]
    if not question.strip():
        # A query may be blank in the mode `themes`; what a person says may not.
        wrong.append({"loc": ("body", "messages"), "msg": "must not end in a blank question", "type": "value_error"})
    if wrong:
        raise validation_problem(wrong)
    try:
        return Query.model_validate({**options, "query": question, "mode": mode})
    except ValidationError as error:
        raise validation_problem(
            [
                {
                    **item,
                    "loc": ("body", "messages") if item["loc"] == ("query",) else ("body", "trellis", *item["loc"]),
                }
                for item in error.errors(include_url=False, include_input=False, include_context=False)
            ]
        ) from None


def _usage(writing: Writing) -> TokenUsage:
    used = writing.usage
    return TokenUsage(
        prompt_tokens=used.tokens_in, completion_tokens=used.tokens_out, total_tokens=used.tokens_in + used.tokens_out
    )
