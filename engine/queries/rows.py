"""How a screen's SQL becomes frozen rows: one read transaction, one short timeout, keyset cursors, capped counts.

It owns the mechanics only; each screen's SQL lies in the file of that screen.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import Connection as Connection  # every query file takes it from here
from sqlalchemy import text

CAP = 10_000
"""Counts stop here: a screen says "10,000+", it never counts a million rows."""

PAGE = 50

LONGEST_CURSOR = 20_000
"""A place holds texts that lists sort by; an address line of a server is shorter than this."""

# A screen reads whole lists: the planner weighs every way, as for commands it does not (engine.db.session.COMMANDS).
PLANNED_FREELY = "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on"

T = TypeVar("T")


@contextmanager
def reading(conn: Connection, *, seconds: int = 4) -> Iterator[Connection]:
    """One read-only snapshot for a whole page. A list that takes longer than `seconds` is cancelled, not waited for.

    REPEATABLE READ, so that a number and the list under it come from the same moment. The connection is in autocommit,
    as commands need it, so the transaction is spelled here.
    """
    conn.exec_driver_sql(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '{seconds:d}s'; {PLANNED_FREELY}")
    try:
        yield conn
    finally:
        if not conn.invalidated:  # lost: there is nothing to end, and the caller is to hear of the loss
            conn.exec_driver_sql("COMMIT")  # a ROLLBACK would make the driver let go of every prepared statement


def rows(conn: Connection, row_type: type[T], sql: str, params: dict[str, Any]) -> list[T]:
    """Every row as a frozen `row_type`; the columns are its fields."""
    return [row_type(**found) for found in conn.execute(text(sql), params).mappings()]


def row(conn: Connection, row_type: type[T], sql: str, params: dict[str, Any]) -> T | None:
    """The only row, or None."""
    found = conn.execute(text(sql), params).mappings().one_or_none()
    return None if found is None else row_type(**found)


def scalar(conn: Connection, sql: str, params: dict[str, Any]) -> Any:
    """The only value of the only row."""
    return conn.execute(text(sql), params).scalar_one()


def capped(sql: str, *, cap: int = CAP) -> str:
    """A scalar subquery that counts the rows of `sql`, at most one more than `cap` of them."""
    return f"(SELECT count(*) FROM ({sql} LIMIT {cap + 1}) AS counted)"


# ---- keyset pages


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list; `next_cursor` None means that it was the last."""

    items: tuple[T, ...]
    next_cursor: str | None = None


class BadCursor(ValueError):
    """The cursor was not made by this list."""


def page_of(found: list[T], *, limit: int, position: Callable[[T], tuple[Any, ...]]) -> Page[T]:
    """`found` holds up to limit + 1 rows; the surplus one only says that there is more."""
    if len(found) <= limit:
        return Page(tuple(found))
    kept = found[:limit]
    return Page(tuple(kept), cursor_of(*position(kept[-1])))


def cursor_of(at: datetime | int, id: UUID | int | None = None) -> str:
    """An opaque place in a list: the sort value and the id that breaks ties."""
    value = at.isoformat() if isinstance(at, datetime) else at
    return base64.urlsafe_b64encode(json.dumps([value, str(id) if id else None]).encode()).decode().rstrip("=")


def time_cursor(text: str | None) -> tuple[datetime, UUID] | None:
    """The place that `cursor_of(time, id)` named. Raises BadCursor for anything else."""
    value = _decode(text)
    if value is None:
        return None
    try:
        at, id = datetime.fromisoformat(value[0]), UUID(value[1])
    except (AttributeError, TypeError, ValueError) as error:  # UUID(5) asks a number for its text
        raise BadCursor(f"expected a time and an id, found {value!r}") from error
    if at.tzinfo is None:
        raise BadCursor(f"expected a time with a zone, found {value[0]!r}")
    return at, id


def record_cursor(text: str | None) -> tuple[datetime, int] | None:
    """The place that `cursor_of(time, number)` named. Raises BadCursor for anything else."""
    value = _decode(text)
    if value is None:
        return None
    try:
        at, id = datetime.fromisoformat(value[0]), int(value[1])
    except (TypeError, ValueError) as error:
        raise BadCursor(f"expected a time and a number, found {value!r}") from error
    if at.tzinfo is None or not 0 < id < 2**63:
        raise BadCursor(f"expected a time with a zone and a number, found {value!r}")
    return at, id


def number_cursor(text: str | None) -> int | None:
    """The place that `cursor_of(number)` named. Raises BadCursor for anything else."""
    value = _decode(text)
    if value is None:
        return None
    if isinstance(value[0], bool) or not isinstance(value[0], int) or not 0 <= value[0] < 2**63:
        raise BadCursor(f"expected a number, found {value[0]!r}")
    return value[0]


def unpacked(text: str) -> Any:
    """The JSON value inside a cursor. Raises BadCursor for what no list wrote, however it was made."""
    if len(text) > LONGEST_CURSOR:
        raise BadCursor(f"expected a cursor of at most {LONGEST_CURSOR:,} characters, found {len(text):,}")
    try:
        value = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text that the database takes
    except (binascii.Error, ValueError, RecursionError) as error:
        raise BadCursor("expected a cursor from next_cursor") from error
    return value


def _decode(text: str | None) -> list[Any] | None:
    if not text:
        return None
    value = unpacked(text)
    if not isinstance(value, list) or len(value) != 2:
        raise BadCursor("expected a cursor from next_cursor")
    return value
