"""Themes: maps of communities of the concept graph, their concepts and passages."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from app.db.policies import APP_ROLE, fence_by_tenant

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

TABLES = ("theme_maps", "themes", "theme_concepts", "theme_passages")

# A workspace that changed since its themes were looked at, or whose themes somebody asked for.
STALE_THEMES = """
CREATE FUNCTION stale_themes(requeue_after interval, max_rows int)
RETURNS TABLE (tenant_id uuid, workspace_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT w.tenant_id, w.id
    FROM workspaces w JOIN tenants t ON t.id = w.tenant_id AND t.status = 'active'
    JOIN corpus_versions c ON c.tenant_id = w.tenant_id AND c.workspace_id = w.id
   WHERE w.status = 'active' AND (c.version > c.themes_version OR c.are_themes_asked)
     AND c.themes_sent_at < now() - requeue_after
   ORDER BY row_number() OVER (PARTITION BY w.tenant_id ORDER BY c.themes_sent_at), c.themes_sent_at
   LIMIT max_rows
$$
"""
SIGNATURE = "stale_themes(interval, int)"


def row(name: str, kind: type[sa.types.TypeEngine[object]], **options: object) -> sa.Column[object]:
    return sa.Column(name, kind(), **{"nullable": False, **options})  # type: ignore[arg-type]


def of_map(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", "map_id"],
        ["theme_maps.tenant_id", "theme_maps.id"],
        name=op.f(f"fk_{table}_tenant_id_map_id"),
        ondelete="CASCADE",
    )


def index(table: str, *columns: str, unique: bool = False) -> None:
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, list(columns), unique=unique)


def upgrade() -> None:
    _create_maps()
    _create_themes()
    _create_contents()
    for table in TABLES:
        for statement in fence_by_tenant(table):
            op.execute(statement)
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON theme_maps TO {APP_ROLE}")
    op.execute(f"GRANT SELECT, INSERT, DELETE ON themes, theme_concepts, theme_passages TO {APP_ROLE}")
    op.add_column(
        "corpus_versions",
        row("themes_version", sa.BigInteger, server_default="0", comment="As of which its themes were looked at."),
    )
    op.add_column("corpus_versions", row("are_themes_asked", sa.Boolean, server_default="false"))
    op.add_column(
        "corpus_versions",
        sa.Column("themes_sent_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
    )
    op.execute(STALE_THEMES)
    op.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {SIGNATURE} TO {APP_ROLE}")


def _create_maps() -> None:
    op.create_table(
        "theme_maps",
        row("tenant_id", sa.Uuid),
        row("id", sa.Uuid, server_default=sa.text("gen_random_uuid()")),
        row("workspace_id", sa.Uuid),
        row("state", sa.TEXT, server_default="building"),
        sa.Column("building_until", sa.DateTime(timezone=True), comment="Whoever is at it says so again before then."),
        row("corpus_version", sa.BigInteger, server_default="0", comment="As of which it was read."),
        row("levels", sa.Integer, server_default="0"),
        row("base_level", sa.Integer, server_default="0", comment="Of the communities that were found first."),
        row("leaves", sa.Integer, server_default="0"),
        row("passages", sa.Integer, server_default="0", comment="Trusted ones of the workspace, then."),
        row("used_passages", sa.Integer, server_default="0"),
        row("assigned", sa.Integer, server_default="0", comment="Passages in a leaf, of those that were used."),
        row("is_sampled", sa.Boolean, server_default="false"),
        row("concepts", sa.Integer, server_default="0"),
        row("edges", sa.Integer, server_default="0"),
        sa.Column("empty_reason", sa.TEXT()),
        row("milliseconds", sa.Double, server_default="0"),
        row("parameters", JSONB, server_default="{}"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint("state IN ('building', 'ready')", name=op.f("ck_theme_maps_state")),
        sa.CheckConstraint(
            "empty_reason IN ('too_few_passages', 'too_few_concepts')", name=op.f("ck_theme_maps_empty_reason")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_theme_maps_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_theme_maps")),
    )
    index("theme_maps", "tenant_id", "workspace_id", "state", unique=True)


def _create_themes() -> None:
    op.create_table(
        "themes",
        row("tenant_id", sa.Uuid),
        row("map_id", sa.Uuid),
        row("id", sa.Uuid),
        row("level", sa.Integer, comment="0 is the coarsest."),
        row("last_level", sa.Integer, comment="Down to which it stands for itself, where it was not split."),
        row("number", sa.Integer, comment="Its place by importance among those of its level, from 0."),
        sa.Column("parent_id", sa.Uuid()),
        row("first_leaf", sa.Integer),
        row("last_leaf", sa.Integer),
        row("passages", sa.Integer, comment="As of the build, like all figures here."),
        row("documents", sa.Integer),
        row("size", sa.Double, comment="ln(1 + passages) / ln(1 + passages of the map), 0..1 like the rest."),
        *(row(name, sa.Double) for name in ("distinctiveness", "coverage", "entropy", "density", "importance")),
        row(
            "product",
            sa.Double,
            comment="The other formula: ln(1 + passages) * distinctiveness * (.5 + .5 * entropy).",
        ),
        of_map("themes"),
        sa.PrimaryKeyConstraint("tenant_id", "map_id", "id", name=op.f("pk_themes")),
    )
    index("themes", "tenant_id", "map_id", "first_leaf")


def _create_contents() -> None:
    op.create_table(
        "theme_concepts",
        row("tenant_id", sa.Uuid),
        row("map_id", sa.Uuid),
        row("theme_id", sa.Uuid),
        row("key", sa.BigInteger, autoincrement=False),
        row("kind", sa.SmallInteger),
        row("df", sa.Integer, comment="Passages of the theme that hold it, as of the build."),
        row("corpus_df", sa.Integer),
        row("lift", sa.Double),
        row("rank", sa.Integer),
        sa.Column("weight", sa.Double(), comment="1 / ln(1 + corpus_df); none where it is no member."),
        sa.Column("surface", sa.TEXT(), comment="As most passages of the theme write it; none far down."),
        sa.Column("label_rank", sa.SmallInteger(), comment="Its place in the label, if it has one."),
        of_map("theme_concepts"),
        sa.PrimaryKeyConstraint("tenant_id", "map_id", "theme_id", "key", name=op.f("pk_theme_concepts")),
    )
    op.create_index(
        "ix_theme_concepts_key",
        "theme_concepts",
        ["tenant_id", "map_id", "key"],
        postgresql_include=["theme_id", "weight"],
    )
    op.create_table(
        "theme_passages",
        row("tenant_id", sa.Uuid),
        row("map_id", sa.Uuid),
        row("passage_id", sa.BigInteger, autoincrement=False),
        row("theme_id", sa.Uuid),
        row("version_id", sa.Uuid),
        row("document_id", sa.Uuid),
        row("weight", sa.Double, comment="Of its concepts in this leaf."),
        row("is_placed", sa.Boolean, comment="It came after the build."),
        of_map("theme_passages"),
        sa.PrimaryKeyConstraint("tenant_id", "map_id", "passage_id", name=op.f("pk_theme_passages")),
    )
    index("theme_passages", "tenant_id", "map_id", "theme_id")
    index("theme_passages", "tenant_id", "version_id")


def downgrade() -> None:
    op.execute(f"DROP FUNCTION {SIGNATURE}")
    for column in ("themes_sent_at", "are_themes_asked", "themes_version"):
        op.drop_column("corpus_versions", column)
    for table in reversed(TABLES):
        op.drop_table(table)
