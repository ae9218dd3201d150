"""Base of the repositories: every query of a tenant table names the tenant, beside the policy that enforces it."""

from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, select

from app.db.base import TenantRow
from app.db.session import TenantSession

Row = TypeVar("Row", bound=TenantRow)


class TenantRepository:
    """Queries of one tenant. The explicit filter serves the index and the reader; row level security does not rely on it."""

    def __init__(self, session: TenantSession) -> None:
        self.session = session

    def rows(self, model: type[Row], *conditions: Any) -> Select[Row]:
        """A SELECT of this tenant's rows of `model` that meet `conditions`."""
        return select(model).where(model.tenant_id == self.session.tenant_id, *conditions)


def same_row(left: Any, right: Any, column: Any) -> ColumnElement[bool]:
    """The join along a composite foreign key from `column` of `left` to `right`."""
    condition: ColumnElement[bool] = (left.tenant_id == right.tenant_id) & (column == right.id)
    return condition
