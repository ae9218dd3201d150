"""Workspaces are found by the name that clients of OpenAI's interface call them."""

import re
import unicodedata

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "workspaces", sa.Column("slug", sa.Text(), server_default="", nullable=False, comment="Made of its name.")
    )
    connection = op.get_bind()
    rows = connection.execute(sa.text("SELECT tenant_id, id, name FROM workspaces")).all()
    values = [{"tenant_id": row.tenant_id, "id": row.id, "slug": _slug(row.name)} for row in rows]
    if values:
        update = sa.text("UPDATE workspaces SET slug = :slug WHERE tenant_id = :tenant_id AND id = :id")
        connection.execute(update, values)
    op.create_index(op.f("ix_workspaces_tenant_id_slug"), "workspaces", ["tenant_id", "slug"])


def downgrade() -> None:
    op.drop_index(op.f("ix_workspaces_tenant_id_slug"), "workspaces")
    op.drop_column("workspaces", "slug")


def _slug(name: str) -> str:
    """As `app/text/slugs.py` makes it at this revision."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[^\w]+|_+", "-", unicodedata.normalize("NFC", plain)).strip("-")
