"""What Prometheus asks for. It says much about the installation and nothing about a tenant, and needs a token of its own."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.api.deps import ContainerDep
from app.api.problems import DatabaseUnavailable, InternalError, public_problems
from app.domain.tenants.operators import matches_secret
from app.errors import Unauthenticated
from app.metrics import CONTENT_TYPE, exposition

router = APIRouter(tags=["health"])
metrics_bearer = HTTPBearer(auto_error=False, scheme_name="MetricsToken", description="TRELLIS_METRICS_TOKEN.")
EXAMPLE = '# TYPE trellis_queue_messages gauge\ntrellis_queue_messages{queue="ingest"} 0.0\n'


class InvalidMetricsToken(Unauthenticated):
    """The metrics token is missing or wrong, or this installation has none."""

    code = "invalid_metrics_token"
    title = "The metrics token is not valid"


async def check_token(
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(metrics_bearer)], container: ContainerDep
) -> None:
    presented = credentials.credentials if credentials else ""
    if not matches_secret(presented, container.settings.metrics_token):
        raise InvalidMetricsToken("Send the metrics token as `Authorization: Bearer …`.")


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    dependencies=[Depends(check_token)],
    response_class=Response,
    responses={
        200: {
            "description": "Prometheus' text format.",
            "content": {"text/plain": {"schema": {"type": "string"}, "example": EXAMPLE}},
        },
        **public_problems(InvalidMetricsToken, InternalError, DatabaseUnavailable),
    },
)
async def read_metrics(container: ContainerDep) -> Response:
    """What this process has counted, and how the installation stands, which every process of the API tells alike."""
    return Response(exposition(await container.figures.read()), media_type=CONTENT_TYPE)
