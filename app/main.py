"""The HTTP application: `uvicorn --factory app.main:create_app`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.telemetry import TelemetryConfig
from fastapi_offline import FastAPIOffline

from app.api.access import access_of_routes
from app.api.connected import all_ended
from app.api.health import router as health
from app.api.idempotency import install_idempotency
from app.api.metrics import router as metrics
from app.api.middleware import BodyLimit, RequestContext, SecurityHeaders
from app.api.openapi import install_openapi, query_names
from app.api.problems import install_problem_handlers
from app.api.stopping import Stopping, noticing_signals
from app.api.v1.admin.plans import router as plans
from app.api.v1.admin.router import router as operators
from app.api.v1.router import openai_router
from app.api.v1.router import router as v1
from app.bootstrap import Container, open_container, start_traces
from app.collector import calm_collector
from app.logs import configure_logging, log_stray_error
from app.settings import Settings
from app.tracing import stop_tracing

DESCRIPTION = """
Turns documents into context for language models: upload documents into a workspace, poll until they are ready, ask a
question, and get ranked evidence with citations. No answer is generated.

Send an API key as `Authorization: Bearer trl_...`. Errors are problems of RFC 9457 with a stable `code`; every answer
carries an `X-Request-ID`, your own if you send one.
"""


TAGS = [
    {"name": "workspaces", "description": "A corpus: the unit of isolation."},
    {"name": "documents", "description": "Upload, status, originals and passages."},
    {"name": "queries", "description": "Evidence and context for a question."},
    {"name": "themes", "description": "What a corpus is about."},
    {"name": "openai", "description": "The same as models of OpenAI's chat interface, which answer in words."},
    {"name": "entities", "description": "What the knowledge graph holds."},
    {"name": "events", "description": "What became of documents: a stream, and webhooks."},
    {"name": "account", "description": "This key, and what there is to choose from."},
    {"name": "keys", "description": "The API keys of your tenant."},
    {"name": "usage", "description": "What model calls cost, and what of the plan is used."},
    {"name": "audit", "description": "Who changed what."},
    {"name": "operators", "description": "Tenants, for those who run the installation."},
    {"name": "health", "description": "For load balancers, and for Prometheus."},
]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
CORS_HEADERS = ["Authorization", "Content-Type", "Idempotency-Key", "X-Request-ID", "Last-Event-ID"]
# The framework's own would send paths, queries and the words of exceptions, once the environment names a collector.
NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def create_app(container: Container | None = None) -> FastAPI:
    """The application on `container`, or on one that it opens from the environment and closes with itself."""

    settings = container.settings if container is not None else Settings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.stopping = Stopping()
        if container is not None:
            app.state.container = container
            yield
            return
        configure_logging(settings)
        asyncio.get_running_loop().set_exception_handler(log_stray_error)
        start_traces("api", settings)
        try:
            async with open_container(settings) as opened:
                app.state.container = opened
                await opened.graph.search.warm()
                calm_collector()
                with noticing_signals(app.state.stopping, settings.shutdown_grace_seconds):
                    yield
                await all_ended()
        finally:
            await asyncio.to_thread(stop_tracing)

    # Its documentation page loads nothing from elsewhere.
    app = FastAPIOffline(
        title="Trellis", version="1", redoc_url=None, description=DESCRIPTION, lifespan=lifespan, redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        openapi_tags=TAGS,
    )  # fmt: skip
    app.include_router(health)
    app.include_router(metrics)
    app.include_router(v1)
    app.include_router(openai_router)
    app.include_router(operators)
    app.include_router(plans)
    install_problem_handlers(app)
    access = access_of_routes(app)
    install_openapi(app, access)
    app.state.query_names = query_names(app)
    install_idempotency(app)
    _surround(app, settings)
    return app


def _surround(app: FastAPI, settings: Settings) -> None:
    """What is added last is passed first."""
    app.add_middleware(BodyLimit, idle_seconds=settings.body_idle_seconds)
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.allowed_origins, allow_methods=METHODS, allow_headers=CORS_HEADERS,
            expose_headers=["X-Request-ID", "Retry-After"],
        )  # fmt: skip
    app.add_middleware(RequestContext)
    app.add_middleware(SecurityHeaders)
