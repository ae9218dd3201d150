"""Creates, changes and gives up workspaces."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.exc import IntegrityError

from app.db.models import Workspace
from app.db.session import TenantSession
from app.domain.workspaces.errors import ModeNeedsEngine, WorkspaceDeleting, WorkspaceExists
from app.domain.workspaces.repository import WorkspaceRecord, WorkspaceRepository
from app.domain.workspaces.settings import WorkspaceSettings
from app.jobs import PurgeWorkspace, enqueue
from app.retrieval.contract import MODES, Engine, GraphStoreName, IndexProfile, UnknownMode
from app.retrieval.routing import AUTO, check_policy


@dataclass(frozen=True)
class WorkspaceDraft:
    """What a new workspace should be. Models are named by profile; None leaves the choice to the installation."""

    name: str
    engines: tuple[Engine, ...]
    default_mode: str | None
    settings: WorkspaceSettings
    embedding_model: str | None = None
    chat_model: str | None = None
    rerank_model: str | None = None
    graph_store: GraphStoreName = "table"


@dataclass(frozen=True)
class ModelDefaults:
    """The profiles of workspaces that name none."""

    embedding: str
    chat: str


class WorkspaceService:
    def __init__(self, session: TenantSession, defaults: ModelDefaults) -> None:
        self._session = session
        self._workspaces = WorkspaceRepository(session)
        self._defaults = defaults

    async def create(self, draft: WorkspaceDraft) -> WorkspaceRecord:
        """Raises WorkspaceExists, UnknownModel, UnknownMode or ModeNeedsEngine."""
        has_graph = "graph" in draft.engines
        default_mode = draft.default_mode or ("mix" if has_graph else "lazy")
        check_mode(default_mode, draft.engines)
        check_policy(draft.settings.routing, draft.engines)
        embedding = draft.embedding_model or self._defaults.embedding
        chat = draft.chat_model or (self._defaults.chat if has_graph else None)
        profile = draft.settings.index_profile(embedding=embedding, chat=(chat or "") if has_graph else "")
        if await self._workspaces.name_is_taken(draft.name):
            raise _exists(draft.name)
        workspace = Workspace(
            tenant_id=self._session.tenant_id,
            name=draft.name,
            engines=list(draft.engines),
            graph_store=draft.graph_store,
            default_mode=default_mode,
            settings=draft.settings.model_dump(mode="json"),
            index_profile_hash=profile.hash,
            embedding_profile_id=await self._workspaces.model_id(embedding, "embedding"),
            chat_profile_id=await self._workspaces.model_id(chat, "chat") if chat else None,
            rerank_profile_id=await self._rerank_id(draft.rerank_model),
        )
        try:
            await self._workspaces.add(workspace)
        except IntegrityError:  # another request was faster with this name
            raise _exists(draft.name) from None
        return await self._workspaces.get(workspace.id)

    async def update(
        self,
        workspace_id: UUID,
        *,
        name: str | None,
        default_mode: str | None,
        settings: dict[str, Any] | None,
        rerank_model: tuple[str | None] | None = None,
    ) -> WorkspaceRecord:
        """Change what is given; of `settings` the given keys, and `(None,)` takes the reranker away.

        Older versions become outdated where the profile changes.
        """
        record = await self._workspaces.get(workspace_id, for_update=True)
        workspace = record.row
        refuse_deleting(workspace)
        if name is not None and name != workspace.name:
            if await self._workspaces.name_is_taken(name):
                raise _exists(name)
            workspace.name = name
        if default_mode is not None:
            check_mode(default_mode, workspace.engines)
            workspace.default_mode = default_mode
        if settings:
            kept = WorkspaceSettings.stored(workspace.settings).model_dump(mode="json")
            merged = WorkspaceSettings.model_validate({**kept, **settings})
            check_policy(merged.routing, workspace.engines)
            # What only a newer release knows stays as it is.
            workspace.settings = {**workspace.settings, **merged.model_dump(mode="json")}
            workspace.index_profile_hash = profile_of(record, merged).hash
        if rerank_model is not None:
            workspace.rerank_profile_id = await self._rerank_id(rerank_model[0])
            record = replace(record, rerank_model=rerank_model[0])
        workspace.updated_at = func.now()
        try:
            await self._session.flush()
        except IntegrityError:
            raise _exists(name or workspace.name) from None
        await self._session.refresh(workspace)
        return record

    async def _rerank_id(self, name: str | None) -> UUID | None:
        return await self._workspaces.model_id(name, "rerank") if name is not None else None

    async def delete(self, workspace_id: UUID) -> WorkspaceRecord:
        """Mark for removal: it refuses all work from now on, and its rows go in the background."""
        record = await self._workspaces.get(workspace_id, for_update=True)
        if record.row.status != "deleting":
            record.row.status = "deleting"
            record.row.updated_at = func.now()
            await self._session.flush()
            await self._session.refresh(record.row)
        enqueue(self._session, PurgeWorkspace(tenant_id=self._session.tenant_id, workspace_id=workspace_id))
        return record


def profile_of(record: WorkspaceRecord, settings: WorkspaceSettings | None = None) -> IndexProfile:
    """The index profile that a workspace's new versions are indexed under."""
    chosen = settings or WorkspaceSettings.stored(record.row.settings)
    chat = (record.chat_model or "") if "graph" in record.row.engines else ""
    return chosen.index_profile(embedding=record.embedding_model, chat=chat)


def check_mode(mode: str, engines: Sequence[str]) -> None:
    """Raises UnknownMode, or ModeNeedsEngine if the workspace does not have the engine of `mode`; `auto` needs none."""
    if mode == AUTO:
        return
    if mode not in MODES:
        raise UnknownMode(f"There is no mode {mode!r}.", mode=mode, modes=[*MODES, AUTO])
    if MODES[mode] not in engines:
        raise ModeNeedsEngine(
            f"The mode {mode!r} needs the engine {MODES[mode]!r}, which the workspace does not have.",
            mode=mode, engine=MODES[mode], modes=[name for name, engine in MODES.items() if engine in engines],
        )  # fmt: skip


def refuse_deleting(workspace: Workspace) -> None:
    if workspace.status == "deleting":
        raise WorkspaceDeleting("This workspace is being deleted.", workspace_id=workspace.id)


def _exists(name: str) -> WorkspaceExists:
    return WorkspaceExists(f"There is a workspace named {name!r} already.", name=name)
