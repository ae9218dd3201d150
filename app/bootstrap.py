"""Turns `Settings` into the objects a process works with: the one place that knows what stands behind each protocol.

The API and the workers open the same container; closing it gives back every connection it opened.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass

import httpx
import structlog
from celery import Celery
from kombu.exceptions import OperationalError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app import tracing
from app.aside import Aside
from app.blobs.store import BlobStore
from app.db.session import Database
from app.domain.entities.automatic import AutomaticMerging
from app.domain.entities.changes import EntityChanges
from app.domain.entities.checking import GraphChecking
from app.domain.entities.duplicates import EntityDuplicates
from app.domain.entities.editing import EntityEditing
from app.domain.entities.looking import EntityLooking
from app.domain.entities.service import EntityService
from app.domain.events.delivery import WebhookSender
from app.domain.ingestion.figures import InstallationFigures
from app.domain.ingestion.leases import WorkspaceLeases
from app.domain.ingestion.leftovers import LeftoverSweeper
from app.domain.ingestion.moving import DirectConnectionNeeded, GraphMove
from app.domain.ingestion.partitions import VectorUpkeep
from app.domain.ingestion.ports import Ports
from app.domain.ingestion.runner import JobRunner
from app.domain.ingestion.sweeper import Sweeper
from app.domain.limits.rates import RequestRates
from app.domain.models.service import ModelProfiles
from app.domain.queries.explaining import QueryExplainer
from app.domain.queries.ready import ReadyDocuments
from app.domain.queries.reranking import Reranking
from app.domain.queries.service import QueryService
from app.domain.readiness import Readiness
from app.domain.retention.service import Retention
from app.domain.tenants.oidc import Issuer, TokenVerifier
from app.domain.themes.browsing import ThemeBrowsing
from app.domain.themes.refreshing import ThemeRefreshing
from app.domain.themes.reports import ThemeReports
from app.domain.workspaces.opening import WorkspaceOpener
from app.jobs import Job
from app.parsing.service import FileParser
from app.providers.factory import ModelFactory
from app.retrieval.concepts import ConceptGraphs
from app.retrieval.contract import THEME_MODES
from app.retrieval.lazy.engine import LazySearch
from app.retrieval.lazy.index import ConceptIndex
from app.retrieval.lazy.size_store import IndexSizes
from app.retrieval.lightrag.adapter import GraphEngine, open_graph_engine
from app.retrieval.registry import SearchRegistry
from app.retrieval.themes.browsing import ThemeBrowser
from app.retrieval.themes.search import ThemeSearch
from app.settings import Settings, refuse_engine_hijack

# Of one read or write; an attempt as a whole has a limit of its own.
WEBHOOK_SOCKET_SECONDS = 30

logger = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class Container:
    """What the services of one process are built from."""

    settings: Settings
    database: Database
    redis: Redis
    blobs: BlobStore
    workspaces: WorkspaceOpener
    leases: WorkspaceLeases
    graph: GraphEngine
    searches: SearchRegistry
    concepts: ConceptGraphs
    themes: ThemeBrowser
    index_sizes: IndexSizes
    reranking: Reranking
    ready_documents: ReadyDocuments
    tokens: TokenVerifier | None
    rates: RequestRates
    parser: FileParser
    figures: InstallationFigures
    readiness: Readiness

    def queries(self) -> QueryService:
        return QueryService(
            self.database, self.workspaces, self.searches, self.concepts, self.reranking, self.ready_documents
        )

    def explainer(self) -> QueryExplainer:
        return QueryExplainer(
            self.database, self.workspaces, self.searches, self.concepts, self.reranking, self.ready_documents
        )

    def theme_browsing(self) -> ThemeBrowsing:
        return ThemeBrowsing(self.queries(), self.themes)

    def theme_reports(self) -> ThemeReports:
        return ThemeReports(self.database, self.workspaces, self.themes)

    def entities(self) -> EntityService:
        return EntityService(self.database, self.workspaces, self.graph.entities)

    def graph_move(self) -> GraphMove:
        """Raises DirectConnectionNeeded: a move holds a lock of its session, for longer than a pooler lends one."""
        if self.settings.database_pooler != "none":
            raise DirectConnectionNeeded(
                "Moving a graph needs connections of its own: run it with TRELLIS_DATABASE_URL leading to Postgres itself, and "
                "TRELLIS_DATABASE_POOLER=none."
            )
        return GraphMove(self.database, self.workspaces, self.leases, self.graph.stores, self.graph.moves)

    def entity_editing(self) -> EntityEditing:
        return EntityEditing(self.entities(), self.entity_changes(), self.graph.entities)

    def entity_looking(self) -> EntityLooking:
        return EntityLooking(self.entities(), self.graph.entities)

    def entity_duplicates(self) -> EntityDuplicates:
        return EntityDuplicates(self.database, self.entities(), self.entity_changes(), self.graph.entities)

    def automatic_merging(self) -> AutomaticMerging:
        return AutomaticMerging(self.database, self.entity_duplicates())

    def theme_refreshing(self) -> ThemeRefreshing:
        return ThemeRefreshing(self.database, self.settings)

    def graph_checking(self) -> GraphChecking:
        return GraphChecking(self.database, self.entities(), self.entity_changes(), self.graph.entities)

    def entity_changes(self) -> EntityChanges:
        return EntityChanges(
            self.database, self.entities(), self.graph.entities, self.graph.entities, self.leases,
            inline_relations=self.settings.merge_inline_relations,
        )  # fmt: skip


class CeleryPublisher:
    """Sends committed jobs to the broker, by name. A job that cannot be sent is not lost: its row is the outbox."""

    def __init__(self, broker_url: str) -> None:
        self._celery = Celery("trellis", broker=broker_url, set_as_current=False)
        self._celery.conf.update(
            broker_connection_timeout=3,
            # One quick second try: callers wait for this, and the sweeper sends what is not sent here.
            broker_transport_options={
                "socket_timeout": 5,
                "socket_connect_timeout": 3,
                "max_retries": 1,
                "interval_start": 0,
                "interval_step": 0.1,
            },
            task_ignore_result=True,
        )

    async def publish(self, jobs: Sequence[Job]) -> None:
        """Send `jobs` in order; what the broker does not take is logged and left to the sweeper."""
        request_id = structlog.contextvars.get_contextvars().get("request_id")
        attributes: dict[str, tracing.Value] = {
            "messaging.system": "celery",
            "messaging.operation.type": "send",
            "messaging.batch.message_count": len(jobs),
        }
        try:
            with tracing.span("send jobs", attributes, kind="producer"):
                headers = {**tracing.carrier(), **({"request_id": request_id} if request_id else {})}
                await asyncio.to_thread(self._send, jobs, headers)
        except (OperationalError, RedisError, OSError) as error:
            logger.warning("jobs_not_published", jobs=[job.name for job in jobs], error_type=type(error).__name__)

    def _send(self, jobs: Sequence[Job], headers: dict[str, str]) -> None:
        for job in jobs:
            self._celery.send_task(
                job.name,
                kwargs=job.payload(),
                queue=job.queue,
                headers=headers,
                retry=False,
            )

    def close(self) -> None:
        self._celery.close()


def start_traces(process: str, settings: Settings) -> None:
    """As `tracing.start_tracing`, from the settings."""
    tracing.start_tracing(
        process, settings.traces_endpoint, settings.traces_headers.get_secret_value(), settings.traces_sample_ratio
    )


@asynccontextmanager
async def open_container(settings: Settings) -> AsyncIterator[Container]:
    """Connect lazily to everything `settings` names. Raises `UnsafeEnvironment` before anything is opened."""
    refuse_engine_hijack()
    async with AsyncExitStack() as stack:
        publisher = CeleryPublisher(settings.redis_url.get_secret_value())
        stack.callback(publisher.close)
        database = Database(
            settings.database_url.get_secret_value(),
            pool_size=settings.database_pool_size,
            publish=publisher.publish,
            statement_timeout_seconds=settings.statement_timeout_seconds,
            idle_in_transaction_seconds=settings.idle_in_transaction_seconds,
            is_borrowed=settings.database_pooler == "transaction",
        )
        stack.push_async_callback(database.close)
        redis = Redis.from_url(
            settings.redis_url.get_secret_value(), socket_timeout=5, socket_connect_timeout=3, health_check_interval=30
        )
        stack.push_async_callback(redis.aclose)
        models = ModelFactory(redis)
        stack.push_async_callback(models.aclose)
        issuer_client = await stack.enter_async_context(httpx.AsyncClient())
        graph = await stack.enter_async_context(open_graph_engine(settings, database))
        lazy = LazySearch(database, cache_bytes=settings.lazy_cache_bytes)
        yield Container(
            settings=settings,
            database=database,
            redis=redis,
            blobs=BlobStore(settings.blob_url),
            workspaces=WorkspaceOpener(database, ModelProfiles(database, settings.secret_key), models),
            leases=WorkspaceLeases(database, settings.lease_seconds),
            graph=graph,
            searches=SearchRegistry(
                {"lazy": lazy, "graph": graph.search}, dict.fromkeys(THEME_MODES, ThemeSearch(database))
            ),
            concepts=lazy,
            themes=ThemeBrowser(database),
            index_sizes=IndexSizes(database),
            reranking=Reranking(settings.rerank_timeout_seconds),
            ready_documents=ReadyDocuments(),
            tokens=_token_verifier(settings, database, issuer_client),
            rates=RequestRates(redis),
            readiness=Readiness(database, redis),
            figures=InstallationFigures(database, lambda queue: _messages_waiting(redis, queue)),
            parser=await stack.enter_async_context(aclosing(FileParser())),
        )


def _token_verifier(settings: Settings, database: Database, client: httpx.AsyncClient) -> TokenVerifier | None:
    if settings.oidc_issuer is None or settings.oidc_audience is None:
        return None
    issuer = Issuer(
        issuer=settings.oidc_issuer,
        audience=settings.oidc_audience,
        algorithms=settings.oidc_algorithm_names,
        jwks_url=settings.oidc_jwks_url,
        tenant_claim=settings.oidc_tenant_claim,
        role_claim=settings.oidc_role_claim,
    )
    return TokenVerifier(issuer, database, client)


@dataclass(frozen=True)
class Worker:
    """What a worker process runs: jobs as they come, and the sweeps and the tending of vectors when it is time."""

    container: Container
    jobs: JobRunner
    sweeper: Sweeper
    leftovers: LeftoverSweeper
    vectors: VectorUpkeep
    retention: Retention
    webhooks: WebhookSender


@asynccontextmanager
async def open_worker(settings: Settings) -> AsyncIterator[Worker]:
    """A container with what writes documents and graphs."""
    async with open_container(settings) as container, webhook_client() as client, aclosing(Aside()) as aside:
        ports = Ports(
            settings=settings,
            database=container.database,
            blobs=container.blobs,
            parser=container.parser,
            run_aside=aside.run,
            leases=container.leases,
            workspaces=container.workspaces,
            lazy_index=ConceptIndex(aside.run),
            graph_index=container.graph.index,
            waiting=lambda queue: _messages_waiting_or_none(container.redis, queue),
        )
        sweeper = Sweeper(container.database, settings, lambda queue: _messages_waiting(container.redis, queue))
        leftovers = LeftoverSweeper(
            container.database, container.blobs, container.graph.index, settings.leftover_age_seconds
        )
        yield Worker(
            container=container,
            jobs=JobRunner(
                ports,
                container.entity_changes().run,
                container.automatic_merging().run,
                container.theme_refreshing().run,
            ),
            sweeper=sweeper,
            leftovers=leftovers,
            vectors=VectorUpkeep(container.database),
            retention=Retention(
                container.database, event_seconds=settings.event_seconds, query_seconds=settings.query_seconds
            ),
            webhooks=WebhookSender(container.database, settings, client),
        )


async def _messages_waiting_or_none(redis: Redis, queue: str) -> int:
    try:
        return await _messages_waiting(redis, queue)
    except (RedisError, OSError):
        return 0


def webhook_client(authorities: ssl.SSLContext | None = None) -> httpx.AsyncClient:
    """For addresses of customers, which `authorities` vouch for, or the public ones. A connection serves one request: a kept one would be found again by its address,
    whatever name its certificate was checked for."""
    return httpx.AsyncClient(
        verify=authorities or True,
        follow_redirects=False,
        trust_env=False,
        timeout=WEBHOOK_SOCKET_SECONDS,
        limits=httpx.Limits(max_keepalive_connections=0),
    )


async def _messages_waiting(redis: Redis, queue: str) -> int:
    """Length of a queue; Celery's Redis transport keeps each as a list under its name."""
    return await redis.llen(queue)
