"""F35: what a page costs the database is bounded: counts stop, and a statement that takes too long is ended."""

from __future__ import annotations

import time

import psycopg
import pytest
from psycopg.errors import QueryCanceled
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from engine.db.session import connect, make_engine
from engine.queries.overview import overview
from engine.queries.rows import CAP, reading
from tests import rows
from tests.worker.processes import eventually

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def test_F35_a_count_stops_at_its_cap_and_the_page_says_so(database_url, committed_db: psycopg.Connection, client_for):
    instance = rows.instance(committed_db)
    committed_db.execute(
        "INSERT INTO process_instance (id, root_id, definition_id, started_by)"
        " SELECT n.id, n.id, i.definition_id, 'ada' FROM process_instance i, generate_series(1, %s) g,"
        " LATERAL (SELECT gen_random_uuid() AS id WHERE g > 0) n WHERE i.id = %s",
        (CAP + 500, instance),
    )
    engine = make_engine(database_url, pool_size=1)
    with engine.connect() as screen:
        assert overview(screen).numbers.running == CAP + 1
    engine.dispose()
    assert "10,000+" in client_for("olga").get("/operations").get_data(as_text=True)


def test_F35_a_page_that_takes_too_long_is_ended_and_may_be_asked_for_again(database_url, committed_db: psycopg.Connection, client_for):
    olga = client_for("olga")
    with connect(database_url) as other:
        other.execute("BEGIN")
        other.execute("LOCK TABLE process_instance")
        begun = time.monotonic()
        answer = olga.client.get("/operations")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
        assert 3 < time.monotonic() - begun < 12
        eventually(lambda: committed_db.execute(WAITING).fetchone() == (0,), "nothing to be left waiting on the server")
        other.execute("ROLLBACK")
    assert olga.client.get("/operations").status_code == 200


def test_F35_a_statement_within_a_page_has_its_own_limit(database_url: str):
    engine = make_engine(database_url, pool_size=1)
    with engine.connect() as screen:
        with pytest.raises(DBAPIError) as refused, reading(screen, seconds=1) as conn:
            conn.execute(text("SELECT pg_sleep(30)"))
        assert isinstance(refused.value.orig, QueryCanceled)
        with reading(screen) as conn:
            assert conn.execute(text("SELECT 1")).scalar_one() == 1, "the connection is good for the next page"
    engine.dispose()
