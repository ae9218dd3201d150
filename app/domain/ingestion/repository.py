"""Queries of ingestion: versions with their surroundings and claims, chunks, live pointers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, bindparam, delete, exists, func, select, text, update
from sqlalchemy.orm import aliased

from app.db.base import TenantId, WorkspaceId
from app.db.models import (
    Blob,
    Chunk,
    Document,
    IndexState,
    LiveVersion,
    Passage,
    Plan,
    Tenant,
    Version,
    Workspace,
    WorkspaceLease,
)
from app.db.repository import TenantRepository, same_row
from app.db.statements import as_text
from app.domain.ingestion.records import Extraction, TextFacts, VersionFacts
from app.domain.ingestion.states import WAITING, Claim, claim_lost, finished
from app.domain.ingestion.transition_repository import FINISH
from app.retrieval.contract import ChunkOutcome, ChunkText, Engine, Statement, VersionChunks, WorkspaceRef
from app.text.chunks import ChunkDraft, render_chunk

# Moves the pointer forward only: an older version that finishes late does not displace a newer one, and a partial
# index does not displace a whole one.
_MOVE_LIVE = """
INSERT INTO live_versions (tenant_id, document_id, engine, workspace_id, version_id)
SELECT CAST(:tenant_id AS uuid), CAST(:document_id AS uuid), :engine, CAST(:workspace_id AS uuid), CAST(:version_id AS uuid) {of}
ON CONFLICT (tenant_id, document_id, engine) DO UPDATE SET version_id = EXCLUDED.version_id
 WHERE (SELECT ordinal FROM versions WHERE tenant_id = :tenant_id AND id = EXCLUDED.version_id)
       > (SELECT ordinal FROM versions WHERE tenant_id = :tenant_id AND id = live_versions.version_id)
   AND NOT (:is_partial AND EXISTS (SELECT 1 FROM index_states s
                                     WHERE s.tenant_id = :tenant_id AND s.version_id = live_versions.version_id
                                       AND s.engine = :engine AND s.state = 'ready'))
"""
MOVE_LIVE = text(_MOVE_LIVE.format(of=""))

_BUMP_CORPUS = """
UPDATE corpus_versions SET version = version + 1 WHERE tenant_id = :tenant_id AND workspace_id = :workspace_id
"""
BUMP_CORPUS = text(_BUMP_CORPUS)

ADD_CHUNKS = text("""
INSERT INTO chunks (tenant_id, version_id, workspace_id, ordinal, first_passage, last_passage, tokens)
SELECT :tenant_id, :version_id, :workspace_id, ordinal, first_passage, last_passage, tokens
  FROM unnest(CAST(:ordinals AS int[]), CAST(:firsts AS int[]), CAST(:lasts AS int[]), CAST(:tokens AS int[]))
       AS draft (ordinal, first_passage, last_passage, tokens)
 ORDER BY ordinal
""")

# Whoever has lost the claim changes nothing by it.
PUBLISH_TEXT = text(f"""
WITH finished AS ({FINISH} RETURNING s.version_id), described AS (
  UPDATE versions
     SET language = :language, page_count = :page_count, char_count = :char_count, passage_count = :passage_count,
         chunk_count = :chunk_count,
         index_profile_hash = CASE WHEN (SELECT title FROM documents WHERE tenant_id = :tenant_id AND id = :document_id) = :title
                                   THEN :profile_hash ELSE '' END
    FROM finished WHERE tenant_id = :tenant_id AND id = finished.version_id
), moved AS ({_MOVE_LIVE.format(of="FROM finished")}), bumped AS ({_BUMP_CORPUS} AND EXISTS (SELECT 1 FROM finished))
SELECT version_id FROM finished
""")  # noqa: S608 - put together from constants of ours

HAS_OTHERS = text("""
SELECT EXISTS (SELECT 1 FROM versions WHERE tenant_id = :tenant_id AND document_id = :document_id AND id <> :version_id)
""")

NOTE_OUTCOMES = text("""
UPDATE chunks SET state = outcome.state, error_code = outcome.code, error_detail = outcome.detail
  FROM unnest(CAST(:ordinals AS int[]), CAST(:states AS text[]), CAST(:codes AS text[]), CAST(:details AS text[]))
       AS outcome (ordinal, state, code, detail)
 WHERE chunks.tenant_id = :tenant_id AND chunks.version_id = :version_id AND chunks.ordinal = outcome.ordinal
""")


_OTHER = aliased(Version)
_FACTS = (
    select(
        Version, Document.title, Document.filename, Workspace.number, Workspace.settings, Blob.key,
        exists().where(
            IndexState.tenant_id == Version.tenant_id, IndexState.version_id == Version.id, IndexState.engine == "graph"
        ),
        exists().where(
            _OTHER.tenant_id == Version.tenant_id, _OTHER.document_id == Version.document_id, _OTHER.id != Version.id
        ),
        exists().where(
            Tenant.id == Version.tenant_id, Plan.name == Tenant.plan, Plan.concurrent_ingestions.is_not(None)
        ),
    )
    .join(Document, same_row(Version, Document, Version.document_id))
    .join(Workspace, same_row(Version, Workspace, Version.workspace_id))
    .join(Blob, same_row(Version, Blob, Version.blob_id))
    .where(Version.tenant_id == bindparam("tenant_id"), Version.id == bindparam("version_id"))
)  # fmt: skip
_CHUNKS = (
    select(
        Chunk.ordinal, Chunk.first_passage, Chunk.last_passage, Chunk.tokens, Chunk.state, Chunk.error_code,
        Chunk.error_detail,
    )
    .where(Chunk.tenant_id == bindparam("tenant_id"), Chunk.version_id == bindparam("version_id"))
    .order_by(Chunk.ordinal)
)  # fmt: skip
_PASSAGES = (
    select(Passage.text, Passage.char_start, Passage.char_end, Passage.heading_path)
    .where(Passage.tenant_id == bindparam("tenant_id"), Passage.version_id == bindparam("version_id"))
    .order_by(Passage.ordinal)
)


class IngestionRepository(TenantRepository):
    # --- versions ---------------------------------------------------------------------------------------------------

    async def find_version(self, version_id: UUID) -> VersionFacts | None:
        row = (await self.session.execute(_FACTS, self._of_version(version_id))).one_or_none()
        if row is None:
            return None
        version, title, filename, number, settings, key, has_graph, has_others, is_bounded = row
        return VersionFacts(
            ref=WorkspaceRef(TenantId(version.tenant_id), WorkspaceId(version.workspace_id), number),
            document_id=version.document_id,
            version_id=version.id,
            title=title,
            filename=filename,
            media_type=version.media_type,
            blob_key=key,
            profile_hash=version.index_profile_hash,
            settings=settings,
            has_text=version.passage_count is not None,
            has_graph=has_graph,
            has_others=has_others,
            is_bounded=is_bounded,
        )

    async def has_open(self, workspace_id: UUID, engine: Engine) -> bool:
        """Whether a version of the workspace waits for the engine, or is at it."""
        waiting = self.rows(
            IndexState,
            IndexState.workspace_id == workspace_id,
            IndexState.engine == engine,
            IndexState.state.in_(("queued", "running")),
        )
        return await self.session.scalar(waiting.limit(1)) is not None

    async def find_claim(self, version_id: UUID, engine: Engine, owner: str) -> Claim | None:
        """The claim that `owner` holds, if it still does."""
        state = await self.session.scalar(
            self.rows(
                IndexState,
                IndexState.version_id == version_id,
                IndexState.engine == engine,
                IndexState.state == "running",
                IndexState.lease_owner == owner,
            )
        )
        if state is None:
            return None
        return Claim(state.tenant_id, state.workspace_id, version_id, engine, owner, state.attempts)

    async def find_waiting(self, workspace_id: UUID) -> UUID | None:
        """The version that has waited longest for the workspace's lease, if the lease is free."""
        query = (
            select(IndexState.version_id)
            .join(
                WorkspaceLease,
                (IndexState.tenant_id == WorkspaceLease.tenant_id)
                & (IndexState.workspace_id == WorkspaceLease.workspace_id),
            )
            .where(
                IndexState.tenant_id == self.session.tenant_id,
                IndexState.workspace_id == workspace_id,
                IndexState.state == "queued",
                IndexState.stage == WAITING,
                (WorkspaceLease.owner.is_(None)) | (WorkspaceLease.expires_at < func.clock_timestamp()),
            )
            .order_by(IndexState.queued_at)
            .limit(1)
            # Whoever has it locked starts it, or ends it.
            .with_for_update(of=IndexState, skip_locked=True, key_share=True)
        )
        found: UUID | None = await self.session.scalar(query)
        return found

    async def publish_text(
        self, claim: Claim, facts: VersionFacts, found: TextFacts, stage_ms: Mapping[str, float]
    ) -> None:
        """running → ready for the lazy index, what is known of the text, and all that makes queries see it.

        The last statement of its transaction but for what follows from it: it holds the workspace's one row. Raises ClaimLost.
        """
        values = {
            **finished(claim, "ready", None, stage_ms),
            **asdict(found),
            "document_id": facts.document_id,
            "title": facts.title,
            "workspace_id": facts.ref.workspace_id,
            "is_partial": False,
        }
        if (await self.session.execute(PUBLISH_TEXT, values)).first() is None:
            raise claim_lost()

    async def may_be_in_graph(self, version_id: UUID) -> bool:
        """Whether the graph engine may hold anything of the version: never, while it has no chunks."""
        chunk = exists().where(Chunk.tenant_id == IndexState.tenant_id, Chunk.version_id == IndexState.version_id)
        query = self.rows(IndexState, IndexState.version_id == version_id, IndexState.engine == "graph", chunk)
        return await self.session.scalar(query) is not None

    async def remove_text(self, version_id: UUID) -> None:
        """Passages (their vectors go with them) and chunks."""
        for model in (Chunk, Passage):
            await self.session.execute(
                delete(model).where(model.tenant_id == self.session.tenant_id, model.version_id == version_id)
            )

    # --- chunks -----------------------------------------------------------------------------------------------------

    async def add_chunks(self, facts: VersionFacts, drafts: Sequence[ChunkDraft]) -> None:
        await self.session.execute(
            ADD_CHUNKS,
            {
                "tenant_id": facts.ref.tenant_id,
                "workspace_id": facts.ref.workspace_id,
                "version_id": facts.version_id,
                "ordinals": [draft.ordinal for draft in drafts],
                "firsts": [draft.first_passage for draft in drafts],
                "lasts": [draft.last_passage for draft in drafts],
                "tokens": [draft.tokens for draft in drafts],
            },
        )

    async def load_chunks(self, facts: VersionFacts) -> tuple[VersionChunks, Extraction]:
        """The version as the graph engine gets it, the same texts every time they are asked for, and how far it is."""
        chunks = await self._chunks(facts.version_id)
        passages: Sequence[Any] = (await self.session.execute(_PASSAGES, self._of_version(facts.version_id))).all()
        texts = tuple(
            ChunkText(chunk.ordinal, render_chunk(passages[chunk.first_passage : chunk.last_passage + 1]), chunk.tokens)
            for chunk in chunks
        )
        return VersionChunks(facts.version_id, facts.document_id, texts), _extraction_of(chunks)

    async def note_outcomes(self, version_id: UUID, outcomes: Sequence[ChunkOutcome]) -> None:
        """Chunks whose failure may pass stay open, with the reason."""
        if not outcomes:
            return
        states = [
            "extracted" if outcome.error_code is None else "pending" if outcome.may_pass else "failed"
            for outcome in outcomes
        ]
        await self.session.execute(
            NOTE_OUTCOMES,
            {
                "tenant_id": self.session.tenant_id,
                "version_id": version_id,
                "ordinals": [outcome.ordinal for outcome in outcomes],
                "states": states,
                "codes": [outcome.error_code for outcome in outcomes],
                "details": [outcome.error_detail for outcome in outcomes],
            },
        )

    async def fail_pending_chunks(self, version_id: UUID, code: str, detail: str) -> None:
        """Give up what is open; a chunk that has a reason of its own keeps it."""
        await self.session.execute(
            update(Chunk)
            .where(Chunk.tenant_id == self.session.tenant_id, Chunk.version_id == version_id, Chunk.state == "pending")
            .values(
                state="failed",
                error_code=func.coalesce(Chunk.error_code, code),
                error_detail=func.coalesce(Chunk.error_detail, detail),
            )
        )

    async def reopen_chunks(self, version_id: UUID) -> None:
        """Forget all outcomes: the chunks are to be extracted under another profile."""
        await self.session.execute(
            update(Chunk)
            .where(Chunk.tenant_id == self.session.tenant_id, Chunk.version_id == version_id)
            .values(state="pending", error_code=None, error_detail=None)
        )

    async def extraction(self, version_id: UUID) -> Extraction:
        return _extraction_of(await self._chunks(version_id))

    async def _chunks(self, version_id: UUID) -> Sequence[Any]:
        return (await self.session.execute(_CHUNKS, self._of_version(version_id))).all()

    def _of_version(self, version_id: UUID) -> dict[str, UUID]:
        return {"tenant_id": self.session.tenant_id, "version_id": version_id}

    # --- what queries see -------------------------------------------------------------------------------------------

    async def move_live(self, facts: VersionFacts, engine: Engine, *, is_partial: bool = False) -> None:
        """Point the engine at this version, unless it answers from a newer or a more complete one."""
        await self.session.execute(moving_live(facts, engine, is_partial=is_partial))

    async def find_displaced(self, facts: VersionFacts, engine: Engine, *, is_partial: bool = False) -> UUID | None:
        """The older version that the engine stops answering from when this one goes live."""
        newer = aliased(Version)
        query = (
            select(LiveVersion.version_id)
            .join(Version, (Version.tenant_id == LiveVersion.tenant_id) & (Version.id == LiveVersion.version_id))
            .join(newer, (newer.tenant_id == LiveVersion.tenant_id) & (newer.id == facts.version_id))
            .where(
                LiveVersion.tenant_id == self.session.tenant_id,
                LiveVersion.document_id == facts.document_id,
                LiveVersion.engine == engine,
                Version.ordinal < newer.ordinal,
            )
        )
        if is_partial:  # as in MOVE_LIVE: it does not displace a whole one
            query = query.where(
                ~exists().where(
                    IndexState.tenant_id == LiveVersion.tenant_id,
                    IndexState.version_id == LiveVersion.version_id,
                    IndexState.engine == engine,
                    IndexState.state == "ready",
                )
            )
        found: UUID | None = await self.session.scalar(query)
        return found

    async def has_other_versions(self, facts: VersionFacts) -> bool:
        """Whether the document has versions beside this one."""
        values = {**self._of_version(facts.version_id), "document_id": facts.document_id}
        return bool(await self.session.scalar(HAS_OTHERS, values))

    async def is_live(self, version_id: UUID, engine: Engine) -> bool:
        """Whether the engine answers from the version."""
        query = self.rows(LiveVersion, LiveVersion.version_id == version_id, LiveVersion.engine == engine)
        return await self.session.scalar(query) is not None

    async def drop_live(self, version_id: UUID, engine: Engine) -> None:
        """Stop answering from a version."""
        await self.session.execute(
            delete(LiveVersion).where(
                LiveVersion.tenant_id == self.session.tenant_id,
                LiveVersion.version_id == version_id,
                LiveVersion.engine == engine,
            )
        )

    async def drop_live_document(self, document_id: UUID) -> None:
        """Stop answering from a document, whichever of its versions is live."""
        await self.session.execute(
            delete(LiveVersion).where(
                LiveVersion.tenant_id == self.session.tenant_id, LiveVersion.document_id == document_id
            )
        )

    async def bump_corpus(self, workspace_id: UUID) -> None:
        """The last statement of a transaction that changes what queries see: it holds the workspace's one row."""
        await self.session.execute(bumping_corpus(self.session.tenant_id, workspace_id))


def _extraction_of(chunks: Sequence[Any]) -> Extraction:
    in_vain = {
        state: tuple(
            ChunkOutcome(chunk.ordinal, chunk.error_code, chunk.error_detail)
            for chunk in chunks
            if chunk.state == state and chunk.error_code is not None
        )
        for state in ("failed", "pending")
    }
    pending = frozenset(chunk.ordinal for chunk in chunks if chunk.state == "pending")
    return Extraction(len(chunks), pending, in_vain["failed"], in_vain["pending"])


def moving_live(facts: VersionFacts, engine: Engine, *, is_partial: bool) -> TextClause:
    """The statement of `move_live`."""
    return MOVE_LIVE.bindparams(
        tenant_id=facts.ref.tenant_id,
        document_id=facts.document_id,
        engine=engine,
        workspace_id=facts.ref.workspace_id,
        version_id=facts.version_id,
        is_partial=is_partial,
    )


def bumping_corpus(tenant_id: UUID, workspace_id: UUID) -> TextClause:
    """The statement of `bump_corpus`."""
    return BUMP_CORPUS.bindparams(tenant_id=tenant_id, workspace_id=workspace_id)


def bump(ref: WorkspaceRef) -> Statement:
    """`bump_corpus` for an engine's transaction: no answer from before it may be taken for one from after it."""
    return Statement(*as_text(bumping_corpus(ref.tenant_id, ref.workspace_id)))
