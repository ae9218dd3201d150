"""Routes that look around in the graph: by likeness of names, mentions, neighbours, paths, and all of it as a file."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal
from xml.sax.saxutils import escape, quoteattr

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator

from app.api.deps import ContainerDep, ReaderCaller, WorkspaceDep
from app.api.pagination import Cursor, InvalidCursor, Limit, decode_number, encode_cursor
from app.api.problems import problems
from app.api.v1.entities.editing import EndInQuery, OtherEndInQuery
from app.api.v1.entities.graph_schemas import FoundEntities, MentionPage, MentionRead, PathsRead, SurroundingsRead
from app.api.v1.entities.names import NameInQuery
from app.domain.entities.looking import EntityLooking
from app.domain.workspaces.errors import WorkspaceDeleting, WorkspaceNotFound
from app.domain.workspaces.settings import without_binary
from app.retrieval.contract import EngineOff, EntityEvidence, RelationEvidence
from app.retrieval.entity_contract import EntityNotFound

router = APIRouter(prefix="/v1/workspaces/{workspace_id}", tags=["entities"])
READ = (WorkspaceNotFound, WorkspaceDeleting, EngineOff)


def _file(example: str) -> dict[str, Any]:
    return {"schema": {"type": "string"}, "example": example}


EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "application/jsonl": _file(
                '{"kind": "entity", "name": "Press 4", "type": "Machine", "description": "A press."}\n'
            ),
            "application/graphml+xml": _file('<graphml><graph><node id="Press 4"/></graph></graphml>'),
        }
    }
}


async def entity_looking(container: ContainerDep) -> EntityLooking:
    return container.entity_looking()


LookingDep = Annotated[EntityLooking, Depends(entity_looking)]


@router.get("/entities/search", summary="Search entities by name", responses=problems(*READ))
async def search_entities(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    looking: LookingDep,
    query: Annotated[
        str,
        Query(min_length=1, max_length=200, description="What is known of the name.", examples=["petrowa"]),
        AfterValidator(without_binary),
    ],
    limit: Annotated[int, Query(ge=1, le=100, description="Entities at most.")] = 20,
) -> FoundEntities:
    """By a beginning, a word or the whole of a name, with errors and in any script."""
    found = await looking.search((caller.tenant_id, workspace_id), query, limit=limit)
    return FoundEntities.of(list(found))


@router.get(
    "/entity/mentions", summary="List mentions of an entity", responses=problems(*READ, EntityNotFound, InvalidCursor)
)
async def list_mentions(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    looking: LookingDep,
    name: NameInQuery,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> MentionPage:
    """What each part of a document said of it and of its relations."""
    place, after = (caller.tenant_id, workspace_id), decode_number(cursor) or 0
    found = await looking.mentions(place, name, after=after, limit=limit + 1)
    page, rest = found[:limit], found[limit:]
    return MentionPage(
        items=[MentionRead.of(mention) for mention in page],
        next_cursor=encode_cursor(str(page[-1].id)) if rest else None,
    )


@router.get("/entity/neighbours", summary="Read what is around an entity", responses=problems(*READ, EntityNotFound))
async def read_neighbours(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    looking: LookingDep,
    name: NameInQuery,
    depth: Annotated[int, Query(ge=1, le=3, description="Relations between them at most.")] = 1,
    limit: Annotated[int, Query(ge=1, le=500, description="Entities at most.")] = 100,
) -> SurroundingsRead:
    """Entities within `depth` relations, along the strongest first."""
    found = await looking.neighbours((caller.tenant_id, workspace_id), name, depth=depth, limit=limit)
    return SurroundingsRead.of(found)


@router.get("/entities/paths", summary="Find paths between two entities", responses=problems(*READ, EntityNotFound))
async def read_paths(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    looking: LookingDep,
    source: EndInQuery,
    target: OtherEndInQuery,
    max_length: Annotated[int, Query(ge=1, le=6, description="Relations on a path at most.")] = 4,
    limit: Annotated[int, Query(ge=1, le=50, description="Paths at most.")] = 10,
) -> PathsRead:
    """The shortest ones."""
    place = caller.tenant_id, workspace_id
    found = await looking.paths(place, source, target, longest=max_length, limit=limit)
    return PathsRead(paths=list(found.paths), is_cut=found.is_cut)


@router.get(
    "/graph", summary="Export the graph", responses=problems(*READ) | EXPORTED, response_class=StreamingResponse
)
async def export_graph(
    workspace_id: WorkspaceDep,
    caller: ReaderCaller,
    looking: LookingDep,
    format: Annotated[Literal["jsonl", "graphml"], Query(description="A JSON object a line, or GraphML.")] = "jsonl",
) -> StreamingResponse:
    """All entities, then all relations, as they are read: what is written meanwhile may be in it or not."""
    items = await looking.export((caller.tenant_id, workspace_id))
    if format == "graphml":
        return StreamingResponse(_graphml(items), media_type="application/graphml+xml")
    return StreamingResponse(_lines(items), media_type="application/jsonl")


Items = AsyncIterator[EntityEvidence | RelationEvidence]


async def _lines(items: Items) -> AsyncIterator[str]:
    async for item in items:
        yield json.dumps(_fields(item), ensure_ascii=False) + "\n"


def _fields(item: EntityEvidence | RelationEvidence) -> dict[str, object]:
    documents = [str(document) for document in item.document_ids]
    if isinstance(item, EntityEvidence):
        told = {"kind": "entity", "name": item.name, "type": item.type or "", "description": item.description}
    else:
        told = {"kind": "relation", "source": item.source, "target": item.target, "description": item.description}
        told |= {"keywords": item.keywords, "weight": item.weight}  # type: ignore[dict-item]
    return {**told, "document_ids": documents}


_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="type" for="node" attr.name="type" attr.type="string"/>
<key id="description" for="all" attr.name="description" attr.type="string"/>
<key id="document_ids" for="all" attr.name="document_ids" attr.type="string"/>
<key id="keywords" for="edge" attr.name="keywords" attr.type="string"/>
<key id="weight" for="edge" attr.name="weight" attr.type="double"/>
<graph edgedefault="undirected">
"""
# What XML 1.0 cannot hold, not even escaped.
_UNWRITABLE = dict.fromkeys([*(n for n in range(32) if n not in (9, 10, 13)), 0xFFFE, 0xFFFF])
_SPACES = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


async def _graphml(items: Items) -> AsyncIterator[str]:
    yield _HEAD
    async for item in items:
        data = {"description": item.description, "document_ids": " ".join(map(str, item.document_ids))}
        if isinstance(item, EntityEvidence):
            yield f"<node id={_attribute(item.name)}>{_data({'type': item.type or '', **data})}</node>\n"
        else:
            data |= {"keywords": item.keywords, "weight": str(item.weight)}
            yield f"<edge source={_attribute(item.source)} target={_attribute(item.target)}>{_data(data)}</edge>\n"
    yield "</graph>\n</graphml>\n"


def _attribute(text: str) -> str:
    return quoteattr(text.translate(_UNWRITABLE), _SPACES)


def _data(fields: dict[str, str]) -> str:
    return "".join(f'<data key="{name}">{escape(text.translate(_UNWRITABLE))}</data>' for name, text in fields.items())
