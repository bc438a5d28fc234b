"""How commands execute their statements: the driver's way first, prepared from then on, and the same either way."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors

from engine.commands.transaction import command, transaction
from engine.db import prepared
from engine.db.prepared import Prepared, Statements
from engine.db.session import connect, cursor_of

SOME_ID = UUID("0192f4a0-0000-7000-8000-000000000001")


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    with connect(database_url) as conn:
        yield conn


def names(conn: psycopg.Connection) -> int:
    row = conn.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'baton%'").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize(
    ("statement", "parameters", "found"),
    [
        ("SELECT 1", None, (1,)),
        ("SELECT 'a%b'", None, ("a%b",)),
        ("SELECT 2", {"unused": 1}, (2,)),
        ("SELECT 7 %% %s::int", (4,), (3,)),
        ("SELECT %(a)s::int - %(b)s::int, %(a)s::int", {"b": 2, "a": 5, "unused": object()}, (3, 5)),
        ("SELECT %(only)s::text", {"only": None}, (None,)),
        ("SELECT %s::uuid, %s::uuid[]", (SOME_ID, [SOME_ID]), (SOME_ID, [SOME_ID])),
        ("SELECT %s::text[], %s::jsonb, %s::boolean", (["a'\"\\", None], '{"a": [1]}', True), (["a'\"\\", None], {"a": [1]}, True)),
        ("SELECT %s::timestamptz", (datetime(2026, 11, 30, tzinfo=UTC),), (datetime(2026, 11, 30, tzinfo=UTC),)),
        ("SELECT 1 WHERE false", None, None),
    ],
)
def test_a_statement_answers_the_same_the_first_time_and_prepared(
    conn: psycopg.Connection, statement: str, parameters: Any, found: Any
) -> None:
    answers = [cursor_of(conn).execute(statement, parameters) for _ in range(3)]
    assert [type(answer).__name__ for answer in answers] == ["Cursor", "Prepared", "Prepared"]
    assert [answers[0].fetchone(), answers[2].fetchone()] == [found, found]
    assert names(conn) == 1


def test_rows_come_one_by_one_or_all_that_are_left(conn: psycopg.Connection) -> None:
    for _ in range(2):
        rows = cursor_of(conn).execute("SELECT generate_series(1, %s)", (3,))
        assert rows.fetchone() == (1,)
        assert rows.fetchall() == [(2,), (3,)]
        assert (rows.fetchone(), rows.fetchall()) == (None, [])


def test_a_value_of_another_type_is_prepared_for_itself(conn: psycopg.Connection) -> None:
    for value in (1, 2, 100_000, None, "7"):
        row = cursor_of(conn).execute("SELECT %s::bigint", (value,)).fetchone()
        assert row == (None if value is None else int(value),)
    assert 2 <= names(conn) <= 4


def test_an_error_is_the_drivers_and_the_statement_goes_on_working(conn: psycopg.Connection) -> None:
    for divisor in (1, 1):
        cursor_of(conn).execute("SELECT 1 / %s::int", (divisor,))
    with pytest.raises(errors.DivisionByZero):
        cursor_of(conn).execute("SELECT 1 / %s::int", (0,))
    assert cursor_of(conn).execute("SELECT 1 / %s::int", (1,)).fetchone() == (1,)
    add = "INSERT INTO request (actor, id, hash, outcome) VALUES ('a', %s, 'h', '{}')"
    cursor_of(conn).execute(add, ("1",))
    with pytest.raises(errors.UniqueViolation) as caught:
        cursor_of(conn).execute(add, ("1",))
    assert caught.value.diag.constraint_name == "pk_request"


def test_a_lost_connection_is_an_operational_error_of_a_broken_connection(conn: psycopg.Connection, database_url: str) -> None:
    for _ in range(2):
        cursor_of(conn).execute("SELECT 1")
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (conn.info.backend_pid,))
    for _ in range(2):
        with pytest.raises(psycopg.OperationalError):
            cursor_of(conn).execute("SELECT 1")
        assert conn.broken


def test_what_was_prepared_outlives_a_rollback(conn: psycopg.Connection) -> None:
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), transaction(conn):
            cursor_of(conn).execute("INSERT INTO request (actor, id, hash, outcome) VALUES ('a', '1', 'h', '{}')")
            raise ZeroDivisionError
    assert conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert cursor_of(conn).execute("SELECT count(*) FROM request").fetchone() == (0,)


def test_what_the_driver_let_go_of_is_prepared_again(conn: psycopg.Connection) -> None:
    for _ in range(2):
        cursor_of(conn).execute("SELECT 1")
    assert names(conn) == 1
    conn.execute("DEALLOCATE ALL")
    assert cursor_of(conn).execute("SELECT 1").fetchone() == (1,)
    assert names(conn) == 1


def test_what_is_prepared_after_the_driver_let_go_keeps_its_name_to_itself(conn: psycopg.Connection) -> None:
    def ask(number: int) -> None:
        assert cursor_of(conn).execute(f"SELECT {number}").fetchone() == (number,)

    for number in (0, 0, 1, 1, 2, 2, 3):
        ask(number)
    conn.execute("DEALLOCATE ALL")
    ask(3)  # prepared for the first time: the names that the others had are free on the server
    for number in (0, 1, 2, 3, 4, 4):
        ask(number)


def test_a_command_that_finds_it_gone_in_its_transaction_is_run_again(conn: psycopg.Connection) -> None:
    runs = []

    @command
    def ask(conn: psycopg.Connection) -> Any:
        runs.append(conn)
        with transaction(conn):
            return cursor_of(conn).execute("SELECT 1").fetchone()

    for _ in range(2):
        ask(conn)
    conn.execute("DEALLOCATE ALL")
    assert ask(conn) == (1,)
    assert len(runs) == 4


def test_too_many_statements_begin_anew(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "KEPT", 3)
    for _ in range(3):
        for number in range(5):
            assert cursor_of(conn).execute(f"SELECT {number}").fetchone() == (number,)
            assert names(conn) <= 3


def test_other_threads_run_while_the_server_works(conn: psycopg.Connection, database_url: str) -> None:
    wait = "SELECT pg_advisory_xact_lock(7)"
    for _ in range(2):
        cursor_of(conn).execute(wait)
    with psycopg.connect(database_url) as other:
        other.execute(wait)
        waiting = threading.Thread(target=lambda: cursor_of(conn).execute(wait))
        waiting.start()
        here = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        blocked = f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND {here}"
        while other.execute(blocked).fetchone() != (1,):  # would never end if the waiting thread held the interpreter
            pass
        other.rollback()
        waiting.join()


def test_outside_autocommit_the_driver_begins_its_transactions_as_ever(database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        for _ in range(2):
            cursor_of(conn).execute("INSERT INTO request (actor, id, hash, outcome) VALUES ('a', '1', 'h', '{}')")
            conn.rollback()
        assert cursor_of(conn).execute("SELECT count(*) FROM request").fetchone() == (0,)


def test_statements_go_with_their_connection(database_url: str) -> None:
    conn = connect(database_url)
    for _ in range(2):
        assert isinstance(cursor_of(conn), Statements)
        answer = cursor_of(conn).execute("SELECT 1")
    assert isinstance(answer, Prepared)
    gone = weakref.ref(conn)
    conn.close()
    del conn, answer
    gc.collect()
    assert gone() is None
