"""Whole names of entities, changes that are being written, aliases in the history, and pairs that are one thing."""

import sqlalchemy as sa
from alembic import op

from app.db.policies import APP_ROLE, ENGINE_ROLE, fence_by_tenant

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

KINDS = (
    "merge", "undo", "split", "create_entity", "edit_entity", "delete_entity", "create_relation", "edit_relation",
    "delete_relation",
)  # fmt: skip
ALIAS_KINDS = ("add_alias", "remove_alias")
STATES = ("queued", "done", "failed", "undone")

STALE_CHANGES = "stale_entity_changes(interval, int)"
# They read the decisions about duplicates.
RECORDS = (
    "has_entity_records(uuid)",
    "recorded_entity_names(uuid, text[])",
    "forget_entity_names(uuid, text[], bytea[], text[])",
)
OPEN, OPEN_BEFORE = "state IN ('queued', 'writing')", "state = 'queued'"


def rewrite(signature: str, before: str, after: str) -> None:
    """Make a function again with other words in it; who may call it stays."""
    connection = op.get_bind()
    asked = sa.text("SELECT pg_get_functiondef(CAST(:signature AS regprocedure))")
    definition = str(connection.scalar(asked, {"signature": signature}))
    if before not in definition:
        raise ValueError(f"{signature} says no {before!r}")
    connection.exec_driver_sql(definition.replace(before, after))


def check(column: str, values: tuple[str, ...]) -> None:
    name = f"ck_entity_changes_{column}"
    op.drop_constraint(op.f(name), "entity_changes", type_="check")
    listed = ", ".join(f"'{value}'" for value in values)
    op.create_check_constraint(op.f(name), "entity_changes", f"{column} IN ({listed})")


def keep_open(before: str, after: str) -> None:
    op.drop_index("ix_entity_changes_queued", "entity_changes")
    op.create_index("ix_entity_changes_queued", "entity_changes", ["sent_at"], postgresql_where=sa.text(after))
    rewrite(STALE_CHANGES, f"c.{before}", f"c.{after}")


def rename(before: str, after: str) -> None:
    op.rename_table(before, after)
    for kind, ending in (("pk", ""), ("fk", "_tenant_id_workspace_id")):
        op.execute(f"ALTER TABLE {after} RENAME CONSTRAINT {kind}_{before}{ending} TO {kind}_{after}{ending}")
    for signature in RECORDS:
        rewrite(signature, before, after)


def upgrade() -> None:
    op.create_table(
        "entity_names",
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.Column("workspace_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.TEXT(), nullable=False, comment="As the engine keeps it: a beginning and a digest."),
        sa.Column("whole", sa.TEXT(), nullable=False, comment="As it was said."),
        sa.ForeignKeyConstraint(
            ["tenant_id", "workspace_id"],
            ["workspaces.tenant_id", "workspaces.id"],
            name=op.f("fk_entity_names_tenant_id_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "workspace_id", "name", name=op.f("pk_entity_names")),
    )
    for statement in fence_by_tenant("entity_names"):
        op.execute(statement)
    op.execute(f"GRANT SELECT, INSERT, DELETE ON entity_names TO {ENGINE_ROLE}")
    op.execute(f"GRANT SELECT ON entity_names TO {APP_ROLE}")
    check("kind", (*KINDS, *ALIAS_KINDS))
    check("state", (*STATES, "writing"))
    keep_open(OPEN_BEFORE, OPEN)
    rename("entity_rejections", "duplicate_decisions")
    op.add_column(
        "duplicate_decisions",
        sa.Column("is_same", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
    op.execute(f"GRANT UPDATE ON duplicate_decisions TO {APP_ROLE}")


def downgrade() -> None:
    op.execute(f"REVOKE UPDATE ON duplicate_decisions FROM {APP_ROLE}")
    op.execute("DELETE FROM duplicate_decisions WHERE is_same")
    op.drop_column("duplicate_decisions", "is_same")
    rename("duplicate_decisions", "entity_rejections")
    op.execute("DELETE FROM entity_changes WHERE kind IN ('add_alias', 'remove_alias')")
    op.execute("UPDATE entity_changes SET state = 'failed' WHERE state = 'writing'")
    keep_open(OPEN, OPEN_BEFORE)
    check("state", STATES)
    check("kind", KINDS)
    op.drop_table("entity_names")
