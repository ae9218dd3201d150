"""When somebody asked for themes, and how many builds of them were killed."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("corpus_versions", sa.Column("themes_asked_at", sa.DateTime(timezone=True)))
    op.add_column(
        "corpus_versions",
        sa.Column(
            "themes_tries",
            sa.SmallInteger(),
            server_default="0",
            nullable=False,
            comment="Builds that began since the last one that came to an end.",
        ),
    )


def downgrade() -> None:
    for column in ("themes_tries", "themes_asked_at"):
        op.drop_column("corpus_versions", column)
