"""What every command shares: idle before, idle after, run again only when that is safe."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.pq import TransactionStatus

from engine.commands.outcome import Lease
from engine.commands.transaction import command, transaction
from engine.core.effects import InvariantBroken
from engine.db.session import connect
from engine.ids import new_id


def test_a_command_refuses_a_connection_with_a_transaction_open(committed_db: psycopg.Connection) -> None:
    nothing = command(lambda conn: None)
    committed_db.execute("BEGIN")
    with pytest.raises(InvariantBroken, match="found autocommit=True and INTRANS"):
        nothing(committed_db)
    committed_db.execute("ROLLBACK")
    assert nothing(committed_db) is None


@pytest.mark.parametrize("failure", [errors.DeadlockDetected, errors.SerializationFailure])
def test_a_deadlock_or_serialization_failure_runs_the_command_again_at_most_three_times(
    committed_db: psycopg.Connection, failure: type[Exception]
) -> None:
    runs: list[int] = []

    @command
    def fails(conn: psycopg.Connection, times: int) -> int:
        runs.append(1)
        conn.execute("BEGIN")
        if len(runs) <= times:
            raise failure("staged")
        conn.execute("COMMIT")
        return len(runs)

    assert fails(committed_db, 2) == 3
    runs.clear()
    with pytest.raises(failure):
        fails(committed_db, 3)
    assert len(runs) == 3
    assert committed_db.info.transaction_status == TransactionStatus.IDLE


def test_an_error_leaves_the_connection_idle(committed_db: psycopg.Connection) -> None:
    @command
    def breaks(conn: psycopg.Connection) -> None:
        with transaction(conn):
            conn.execute("SELECT 1/0")

    with pytest.raises(errors.DivisionByZero):
        breaks(committed_db)
    assert committed_db.info.transaction_status == TransactionStatus.IDLE


@command
def dies_once(conn: psycopg.Connection, _lease: Any = None, *, request_id: str | None = None, runs: list[int]) -> int:
    """Its first connection is killed under it."""
    runs.append(conn.info.backend_pid)
    if len(runs) == 1:
        conn.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    return len(runs)


def test_R6_a_lost_connection_reruns_the_command_under_its_request_id_on_a_fresh_connection(database_url: str) -> None:
    runs: list[int] = []
    with connect(database_url) as conn:
        assert dies_once.reconnecting(lambda: connect(database_url))(conn, request_id="press-1", runs=runs) == 2
    assert runs[0] != runs[1]


def test_R6_a_lease_is_as_good_as_a_request_id(database_url: str) -> None:
    with connect(database_url) as conn:
        lease = Lease("job", new_id(), 1, "me")
        assert dies_once.reconnecting(lambda: connect(database_url))(conn, lease, runs=[]) == 2


def test_R6_without_a_request_id_nothing_would_recognise_a_repeat_so_it_is_not_run_again(database_url: str) -> None:
    runs: list[int] = []
    with connect(database_url) as conn, pytest.raises(psycopg.OperationalError):
        dies_once.reconnecting(lambda: connect(database_url))(conn, runs=runs)
    assert len(runs) == 1
