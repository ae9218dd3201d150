"""The history of every index: a trigger writes each transition in the transaction that makes it."""

import sqlalchemy as sa
from alembic import op

from app.db.policies import APP_ROLE, fence_by_tenant

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Per index; older ones are forgotten. One that nobody can finish makes some dozens.
KEPT = 200

# The row of the state is locked by whoever changes it, so ordinals of one index are given out one after the other.
# Reasons are codes of ours, or what the state says of its error. The owner's function is the only one that may write.
NOTE_TRANSITION = f"""
CREATE FUNCTION note_index_transition() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  next int;
  reason text;
  from_state text;
  from_stage text := NEW.stage;
BEGIN
  IF TG_OP = 'INSERT' THEN
    reason := 'added';
  ELSE
    from_state := OLD.state;
    from_stage := OLD.stage;
    reason := CASE
      WHEN OLD.state = NEW.state AND OLD.cleanliness <> NEW.cleanliness
        THEN CASE NEW.cleanliness WHEN 'purging' THEN 'merge_begun' ELSE 'purged' END
      WHEN NEW.state = 'running' THEN CASE OLD.state WHEN 'running' THEN 'lease_expired' ELSE 'claimed' END
      WHEN NEW.state = 'ready' THEN 'finished'
      WHEN NEW.state = 'cancelled' THEN 'cancelled'
      WHEN NEW.state = 'queued' AND OLD.state <> 'running' THEN 'retried'
      WHEN NEW.state = 'queued' AND NEW.error_code IS NULL
        THEN CASE NEW.stage WHEN 'waiting_for_workspace' THEN NEW.stage ELSE 'handed_back' END
      ELSE coalesce(NEW.error_code, NEW.state)
    END;
  END IF;
  SELECT coalesce(max(t.ordinal), 0) + 1 INTO next FROM index_transitions t
   WHERE t.tenant_id = NEW.tenant_id AND t.version_id = NEW.version_id AND t.engine = NEW.engine;
  INSERT INTO index_transitions (tenant_id, version_id, engine, ordinal, from_state, to_state, cleanliness, stage,
                                 attempt, reason, detail)
  VALUES (NEW.tenant_id, NEW.version_id, NEW.engine, next, from_state, NEW.state, NEW.cleanliness, from_stage,
          NEW.attempts, reason, CASE reason WHEN NEW.error_code THEN NEW.error_detail END);
  DELETE FROM index_transitions t
   WHERE t.tenant_id = NEW.tenant_id AND t.version_id = NEW.version_id AND t.engine = NEW.engine
     AND t.ordinal = next - {KEPT};
  RETURN NULL;
END
$$
"""

TRIGGERS = (
    """
CREATE TRIGGER note_first_transition AFTER INSERT ON index_states
   FOR EACH ROW EXECUTE FUNCTION note_index_transition()
""",
    """
CREATE TRIGGER note_transition AFTER UPDATE ON index_states
   FOR EACH ROW WHEN (OLD.state <> NEW.state OR OLD.cleanliness <> NEW.cleanliness OR OLD.attempts < NEW.attempts)
   EXECUTE FUNCTION note_index_transition()
""",
)


def upgrade() -> None:
    op.create_table(
        "index_transitions",
        sa.Column("version_id", sa.Uuid(), nullable=False),
        sa.Column("engine", sa.TEXT(), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("from_state", sa.TEXT(), nullable=True, comment="Null for the first one."),
        sa.Column("to_state", sa.TEXT(), nullable=False),
        sa.Column("cleanliness", sa.TEXT(), nullable=False),
        sa.Column("stage", sa.TEXT(), nullable=False, comment="What was being done when it was left."),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("reason", sa.TEXT(), nullable=False),
        sa.Column("detail", sa.TEXT(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("tenant_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "version_id", "engine"],
            ["index_states.tenant_id", "index_states.version_id", "index_states.engine"],
            name=op.f("fk_index_transitions_tenant_id_version_id_engine"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "version_id", "engine", "ordinal", name=op.f("pk_index_transitions")),
    )
    for statement in fence_by_tenant("index_transitions"):
        op.execute(statement)
    op.execute(f"GRANT SELECT ON index_transitions TO {APP_ROLE}")
    op.execute(NOTE_TRANSITION)
    op.execute("REVOKE ALL ON FUNCTION note_index_transition() FROM PUBLIC")
    for trigger in TRIGGERS:
        op.execute(trigger)


def downgrade() -> None:
    op.execute("DROP TRIGGER note_transition ON index_states")
    op.execute("DROP TRIGGER note_first_transition ON index_states")
    op.execute("DROP FUNCTION note_index_transition()")
    op.drop_table("index_transitions")
