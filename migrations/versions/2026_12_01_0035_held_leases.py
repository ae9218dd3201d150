"""A statement of the graph may hold its workspace's lease: it is refused when that has passed on, and waited for by who takes it."""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

# Runs as the role of a graph as well, which sees no table of ours. A lock of the row itself would keep heartbeats away.
# Only what is waited for tells whether the lease is still held: the statement after a lock reads a new moment.
HOLD_LEASE = """
CREATE FUNCTION hold_lease(tenant uuid, workspace uuid, holder text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('hold ' || workspace::text, 0));
  RETURN EXISTS (SELECT 1 FROM workspace_leases l
                  WHERE l.tenant_id = tenant AND l.workspace_id = workspace AND l.owner = holder);
END
$$
"""


def upgrade() -> None:
    # The roles of graphs are made later, each for one; the function tells nothing to who does not know a holder's name.
    op.execute(HOLD_LEASE)
    op.execute("GRANT EXECUTE ON FUNCTION hold_lease(uuid, uuid, text) TO PUBLIC")


def downgrade() -> None:
    op.execute("DROP FUNCTION hold_lease(uuid, uuid, text)")
