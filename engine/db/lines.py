"""Lines of deliveries: those of one destination and ordering key go out one after the other (baton_next_in_line)."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import errors

from engine.db.locks import NEXT_IN_LINE
from engine.db.session import cursor_of

MOST_LINES = 500  # that one look goes through
BEGINNING = ("", "", "")


class Lines:
    """Where one worker's looks at the lines go on. Few lines wait at a time, and one look sees them all."""

    def __init__(self) -> None:
        self._after = BEGINNING

    def move_on(self, conn: psycopg.Connection[Any]) -> bool:
        """Let go of the first of each line that has none. Whether more lines are to be looked at, by the next look."""
        try:
            [found] = cursor_of(conn).execute(NEXT_IN_LINE, (*self._after, MOST_LINES)).fetchone()
        except errors.UniqueViolation:
            return True  # another worker let go of the first of one of these at the same moment
        self._after = tuple(found["after"]) if found["after"] else BEGINNING
        return bool(found["after"])
