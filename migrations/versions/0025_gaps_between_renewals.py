"""Workers tell of the longest gap between two renewals of a lease."""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().connection.cursor().execute("ALTER TABLE worker ADD COLUMN longest_gap double precision NOT NULL DEFAULT 0")
