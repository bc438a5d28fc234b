"""The spine: people, definitions, cases, durable work, messages, history."""

from pathlib import Path

from alembic import op

from engine.db.functions import install_functions
from engine.db.partitions import make_partitions

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SQL = Path(__file__).parents[1] / "sql" / "0001_the_spine.sql"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute(SQL.read_text(encoding="utf-8"))
    make_partitions(cursor)
    install_functions(cursor)
