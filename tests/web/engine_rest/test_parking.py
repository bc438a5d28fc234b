"""A fetch that waits, step by step and without a server: what the application does when it is asked to park, and to go on."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from flask import Flask

from tests.web.engine_rest.conftest import Program
from tests.web.operations import deployed, one, started
from tests.worker.processes import eventually
from webapp.db import db
from webapp.engine_rest.waiting import Waiter, polls
from webapp.parking import PARKS, TICKET, Parked, has_gone

ASKED = {
    "workerId": "w", "maxTasks": 1, "asyncResponseTimeout": 30_000, "topics": [{"topicName": "charging", "lockDuration": 60_000}],
}  # fmt: skip


@pytest.fixture
def olga(program: Callable[[str], Program], committed_db: psycopg.Connection) -> Program:
    deployed(committed_db, "c7_external_task")
    return program("olga")


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The server's end of a connection, and the client's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def fetch(olga: Program, **environ: Any) -> Any:
    """As the server runs it, which ends the ticket of what does not wait on."""
    answer = olga.client.post("/engine-rest/external-task/fetchAndLock", headers=olga.headers, json=ASKED, environ_overrides=environ)
    if TICKET in environ:
        environ[TICKET].end()
    return answer


def parked(olga: Program, **environ: Any) -> Waiter:
    with pytest.raises(Parked) as raised:
        fetch(olga, **{PARKS: True}, **environ)
    assert isinstance(raised.value.ticket, Waiter)
    return raised.value.ticket


def checked_out(app: Flask) -> int:
    with app.app_context():
        return int(db.engine.pool.checkedout())  # type: ignore[attr-defined]


def test_a_request_that_waits_has_given_its_connection_back_and_goes_on_with_its_ticket(
    app: Flask, olga: Program, committed_db: psycopg.Connection
) -> None:
    waiter = parked(olga)
    called: list[bool] = []
    waiter.start(lambda: called.append(True))
    eventually(lambda: checked_out(app) == 0, "no connection to be held: not by the request, nor between two looks")
    started(committed_db, "orders", amount=1)
    eventually(lambda: called == [True], "it to be called")
    [task] = fetch(olga, **{PARKS: True, TICKET: waiter}).json
    assert task["workerId"] == "w"
    with app.app_context():
        assert len(polls()) == 0


def test_one_that_was_called_for_what_another_had_waits_on_in_its_place(app: Flask, olga: Program) -> None:
    waiter = parked(olga)
    assert parked(olga, **{TICKET: waiter}) is waiter
    with app.app_context():
        assert len(polls()) == 1
    waiter.over = True
    assert fetch(olga, **{PARKS: True, TICKET: waiter}).json == []
    with app.app_context():
        assert len(polls()) == 0


def test_a_key_that_was_revoked_meanwhile_ends_the_wait(app: Flask, olga: Program, committed_db: psycopg.Connection) -> None:
    waiter = parked(olga)
    started(committed_db, "orders", amount=1)
    committed_db.execute("UPDATE api_key SET revoked_at = baton_clock()")
    assert fetch(olga, **{PARKS: True, TICKET: waiter}).status_code == 401
    assert one(committed_db, "SELECT status FROM external_task") == "available"


def test_a_server_that_cannot_park_is_answered_at_once(olga: Program) -> None:
    assert fetch(olga).json == []


def test_who_has_gone_is_given_nothing_at_first_and_later(
    app: Flask, olga: Program, committed_db: psycopg.Connection, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    waiter = parked(olga, **{"gunicorn.socket": ours})
    started(committed_db, "orders", amount=1)
    theirs.close()
    assert fetch(olga, **{PARKS: True, TICKET: waiter, "gunicorn.socket": ours}).json == []
    assert fetch(olga, **{PARKS: True, "gunicorn.socket": ours}).json == []
    assert one(committed_db, "SELECT status || attempts FROM external_task") == "available0"
    with app.app_context():
        assert len(polls()) == 0


def test_a_client_is_there_until_it_has_closed_its_connection(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    environ = {"gunicorn.socket": ours}
    assert not has_gone(environ)
    theirs.sendall(b"its next request")
    assert not has_gone(environ)
    assert ours.recv(100) == b"its next request", "looking takes nothing away"
    theirs.close()
    assert has_gone(environ)
    ours.close()
    assert has_gone(environ)
    assert not has_gone({})
