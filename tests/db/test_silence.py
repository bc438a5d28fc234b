"""A line that goes silent in the middle: neither side hears of it, and whoever waits for an answer goes on all the same."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url

from engine.db import silence
from engine.db.session import connect, cursor_of
from engine.db.silence import give_up_when_silent
from tests.faults.storm.proxy import Link, Proxies
from tests.worker.processes import eventually

Connection = psycopg.Connection[Any]


@pytest.fixture
def line_there(database_url: str) -> Iterator[tuple[Link, str]]:
    """A link that leads to the database, and its URL through it."""
    url = make_url(database_url)
    proxies = Proxies()
    link = proxies.link(lambda: url.port or 5432)
    yield link, url.set(host="127.0.0.1", port=link.port).render_as_string(hide_password=False)
    proxies.stop()


def _by_the_driver(conn: Connection) -> None:
    conn.execute("SELECT 1")


def _as_prepared(conn: Connection) -> None:
    cursor_of(conn).execute("SELECT %(n)s::int", {"n": 1}).fetchall()


@pytest.mark.parametrize("ask", [_by_the_driver, _as_prepared])
def test_F45_an_answer_that_will_not_come_is_not_waited_for_for_ever(line_there, ask: Callable[[Connection], None]):
    link, url = line_there
    with connect(url) as conn:
        give_up_when_silent(conn, statement_seconds=0.5)
        ask(conn)
        ask(conn)
        link.silence()
        with pytest.raises(psycopg.OperationalError):
            ask(conn)
        assert conn.broken


def test_F45_a_connection_that_rests_or_whose_statement_works_is_left_alone(database_url: str):
    with connect(database_url) as conn:
        conn.execute("SELECT pg_sleep(0.3)")
        assert silence._silent_for(conn) == 0  # it rests, however long
        at_work = threading.Thread(target=lambda: conn.execute("SELECT pg_sleep(1.5)"))
        at_work.start()
        eventually(lambda: silence._silent_for(conn) > 0.3, "the wait to be seen", seconds=10)
        at_work.join()
        assert silence._silent_for(conn) == 0
        give_up_when_silent(conn, statement_seconds=2)  # patient for longer than that takes
        assert conn.execute("SELECT pg_sleep(2)").fetchone() is not None


def test_a_connection_that_was_looked_at_goes_once_nobody_has_it(database_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(silence, "EVERY", 0.05)
    looked: set[int] = set()
    monkeypatch.setattr(silence, "_silent_for", lambda conn: looked.add(id(conn)) or 0.0)
    conn = connect(database_url)
    number = id(conn)
    give_up_when_silent(conn, statement_seconds=30)
    eventually(lambda: number in looked, "the look at it", seconds=10)
    conn.close()
    kept = weakref.ref(conn)
    del conn
    eventually(lambda: kept() is None, "it to go", seconds=5)


def test_a_connection_that_was_closed_just_before_it_is_given_up_does_not_end_the_looks(database_url: str):
    conn = connect(database_url)
    conn.close()
    assert silence._silent_for(conn) == 0
    silence._give_up(conn, 1.0)  # an error would end the one thread that looks


class Unstarted:
    """In place of a second thread that looks."""

    def start(self) -> None:
        pass


def test_a_fork_watches_no_connection_of_its_parent(database_url: str, monkeypatch: pytest.MonkeyPatch):
    with connect(database_url) as of_parent, connect(database_url) as own:
        give_up_when_silent(of_parent, statement_seconds=0.5)
        before = dict(silence._patience)
        monkeypatch.setattr(silence, "_watching_in", 0)  # as in a child that was just forked
        monkeypatch.setattr(silence.threading, "Thread", lambda **_: Unstarted())
        give_up_when_silent(own, statement_seconds=0.5)
        assert set(silence._patience) == {own}
        silence._patience.update(before)
