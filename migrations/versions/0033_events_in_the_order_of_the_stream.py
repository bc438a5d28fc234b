"""The history has an index in the order of the stream of process events. It is built under a lock: writers wait for it."""

from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().connection.cursor().execute("CREATE INDEX ix_history_stream ON history (xid, id)")
