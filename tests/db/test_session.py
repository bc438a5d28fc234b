"""The cursors that commands execute their statements by."""

from __future__ import annotations

import gc
import weakref

import psycopg
import pytest

from engine.db import session
from engine.db.session import connect, cursor_of


def test_a_statement_is_executed_by_the_same_cursor_each_time_and_no_other_statement_is(db: psycopg.Connection) -> None:
    cursors = cursor_of(db)
    first = cursors.execute("SELECT %s::int", (1,))
    assert first.fetchone() == (1,)
    assert cursors.execute("SELECT %s::int + 1", (1,)) is not first
    assert cursor_of(db).execute("SELECT %s::int", (2,)) is first
    assert first.fetchone() == (2,)


def test_no_more_cursors_are_kept_than_statements_may_be_prepared(db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "KEPT", 3)
    for number in range(10):
        assert cursor_of(db).execute(f"SELECT {number}").fetchone() == (number,)
        assert len(cursor_of(db)._by_statement) <= 3


def test_cursors_go_with_their_connection(database_url: str) -> None:
    conn = connect(database_url)
    cursor_of(conn).execute("SELECT 1")
    gone = weakref.ref(conn)
    conn.close()
    del conn
    gc.collect()
    assert gone() is None
