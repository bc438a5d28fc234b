"""What every model hangs from, and the one type of PostgreSQL that SQLAlchemy does not know."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import UserDefinedType


class Base(DeclarativeBase):
    """All tables of Baton."""


class Xid8(UserDefinedType[int]):
    """A transaction's number that never wraps around; compared with pg_snapshot_xmin() by whoever reads the history."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "xid8"


ischema_names["xid8"] = Xid8  # so that reflection, and with it `alembic check`, knows it


def status_check(running: str, final: str) -> str:
    """The CHECK of a status: final if and only if `ended_at` is set.

    Arrays as one constant each, and one expression for both rules: the server reads and plans the text of each CHECK anew in every
    statement that writes the table (docs/decisions/0091).
    """
    return f"status = ANY (CASE WHEN ended_at IS NULL THEN '{{{running}}}'::text[] ELSE '{{{final}}}'::text[] END)"
