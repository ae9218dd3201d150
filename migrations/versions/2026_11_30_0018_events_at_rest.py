"""Look whether a document came to rest only where one of its indexes did: the others cannot be what ended its work."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TRIGGER = """
CREATE CONSTRAINT TRIGGER note_event AFTER UPDATE ON index_states DEFERRABLE INITIALLY DEFERRED
   FOR EACH ROW WHEN ((OLD.state <> NEW.state OR OLD.cleanliness <> NEW.cleanliness){only})
   EXECUTE FUNCTION note_document_event()
"""
AT_REST = " AND NEW.state NOT IN ('queued', 'running') AND NEW.cleanliness = 'clean'"


def upgrade() -> None:
    _replace(AT_REST)


def downgrade() -> None:
    _replace("")


def _replace(only: str) -> None:
    op.execute("DROP TRIGGER note_event ON index_states")
    op.execute(TRIGGER.format(only=only))
