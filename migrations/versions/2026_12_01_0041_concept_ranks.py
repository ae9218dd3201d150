"""How central a concept is in the graph that themes are made from, to list concepts by."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "theme_concepts",
        sa.Column("degree", sa.Integer(), comment="Of a member: concepts that it is tied to in the whole graph."),
    )
    op.add_column("theme_concepts", sa.Column("pagerank", sa.Double(), comment="Of a member, in the whole graph."))


def downgrade() -> None:
    op.drop_column("theme_concepts", "pagerank")
    op.drop_column("theme_concepts", "degree")
