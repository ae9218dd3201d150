"""The route that streams events."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from app.api.deps import ContainerDep, ReaderCaller, WorkspaceDep
from app.api.problems import problems, validation_problem
from app.api.v1.events.schemas import EVENT_EXAMPLE, EventRead
from app.domain.events.errors import EventIdUnknown
from app.domain.events.feed import EventFeed
from app.domain.workspaces.errors import WorkspaceNotFound

router = APIRouter(prefix="/v1/workspaces/{workspace_id}/events", tags=["events"])

HEARTBEAT_SECONDS = 15.0
# A client comes back by itself with the last id it has seen, and its key is looked at again.
STREAM_SECONDS = 900.0
RETRY_MS = 2000
LARGEST_ID = 2**63 - 1
STREAM: dict[str, Any] = {
    "description": "Events as they come, oldest first.",
    "content": {
        "text/event-stream": {
            "schema": {"type": "string"},
            "example": f"id: 42\nevent: document.ready\ndata: {EventRead.model_validate(EVENT_EXAMPLE).model_dump_json()}\n\n",
        }
    },
}
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", description="The last id that was seen.")]


@router.get(
    "",
    summary="Follow the events of a workspace",
    response_class=StreamingResponse,
    responses={200: STREAM, **problems(WorkspaceNotFound, EventIdUnknown)},
)
async def stream_events(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    container: ContainerDep,
    request: Request,
    last_event_id: LastEventId = None,
    after: Annotated[int, Query(ge=0, le=LARGEST_ID, description="As Last-Event-ID, which goes before it.")] = 0,
) -> Any:
    """Server-sent events, all that are kept from the first after `Last-Event-ID` on. The stream ends now and then; come
    back with the last id, as browsers do by themselves."""
    if last_event_id is not None:
        after = _position(last_event_id)
    feed = EventFeed(container.database, caller.tenant_id, workspace_id)
    await feed.check(after)  # refused before the first byte is out
    return StreamingResponse(
        _frames(feed, after, request.app.state.stopping.begun),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _frames(feed: EventFeed, after: int, stopping: asyncio.Event) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    quiet_since = loop.time()
    yield format_sse_event(retry=RETRY_MS, comment="connected")
    async for page in feed.follow(after, seconds=STREAM_SECONDS, stopping=stopping):
        for event in page:
            data = EventRead.model_validate(event).model_dump_json()
            yield format_sse_event(data_str=data, event=event.type, id=str(event.id))
        if page:
            quiet_since = loop.time()
        elif loop.time() - quiet_since >= HEARTBEAT_SECONDS:
            quiet_since = loop.time()
            yield format_sse_event(comment="heartbeat")


def _position(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text[:20]) <= LARGEST_ID and len(text) <= len(str(LARGEST_ID)):
        return int(text)
    message = "Not an id that this stream gave out"
    raise validation_problem([{"loc": ("header", "Last-Event-ID"), "msg": message, "type": "int_parsing"}])
