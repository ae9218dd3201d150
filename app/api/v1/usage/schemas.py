"""What usage looks like over HTTP."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from app.domain.limits.repository import LIMITS, Standing
from app.domain.usage.repository import UsageSum

GroupBy = Literal["day", "workspace", "document", "query", "model", "purpose"]
SUM: dict[str, Any] = {
    "key": "2026-11-30", "calls": 12, "estimated_calls": 0, "tokens_in": 20133, "tokens_out": 8124, "cost": 0.0213,
}  # fmt: skip


class UsageRead(BaseModel):
    """Calls of chat and embedding models."""

    model_config = ConfigDict(from_attributes=True)

    key: str | None = Field(description="The day, id or name that this sum is of; null for the total.")
    calls: int
    estimated_calls: int = Field(
        description="Calls whose tokens were counted here: the provider did not say, or was cut off."
    )
    tokens_in: int
    tokens_out: int
    cost: float | None = Field(description="At the prices of the time, where the operator has set any.")


class LimitRead(BaseModel):
    """One limit of the plan."""

    maximum: int | None = Field(description="Null: not limited.")
    used: int | None = Field(description="Null: not a count that lasts.")
    resets_at: datetime | None = Field(description="When `used` begins anew, if it does.")


class UsageReport(BaseModel):
    """What was used in the time asked for, and the plan as it stands now."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "total": {**SUM, "key": None},
                    "items": [SUM],
                    "plan": "standard",
                    "limits": {
                        "documents": {"maximum": 10000, "used": 12, "resets_at": None},
                        "model_tokens_per_month": {
                            "maximum": 5000000, "used": 28257, "resets_at": "2026-12-01T00:00:00Z",
                        },
                    },
                }
            ]
        }
    )  # fmt: skip

    total: UsageRead
    items: list[UsageRead] = Field(description="By `group_by`: days newest first, all else the largest first.")
    plan: str | None
    limits: dict[str, LimitRead] | None = Field(description="Of the whole tenant: null for a key bound to a workspace.")

    @classmethod
    def of(cls, total: UsageSum, items: list[UsageSum], standing: Standing | None) -> Self:
        return cls(
            total=UsageRead.model_validate(total),
            items=[UsageRead.model_validate(item) for item in items],
            plan=standing.plan.name if standing is not None and standing.plan is not None else None,
            limits=limits_of(standing) if standing is not None else None,
        )


def limits_of(standing: Standing) -> dict[str, LimitRead]:
    used = {
        "documents": standing.documents,
        "stored_bytes": standing.stored_bytes,
        "model_tokens_per_month": standing.model_tokens,
    }
    return {
        name: LimitRead(
            maximum=getattr(standing.plan, name, None),
            used=used.get(name),
            resets_at=standing.month_ends_at if name == "model_tokens_per_month" else None,
        )
        for name in LIMITS
    }
