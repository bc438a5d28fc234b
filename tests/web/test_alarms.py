"""Alarms: a lease that nobody takes back, a transaction that keeps rows from vacuum, an index that serves nobody. On page, API and log."""

from __future__ import annotations

import logging
import re
import threading
from contextlib import suppress

import psycopg

from engine.commands.upkeep import Kept, upkeep
from engine.db.session import connect
from tests import rows
from tests.cli.processes import until
from tests.web.conftest import Browser


def found(browser: Browser) -> list[tuple[str, str]]:
    answer = browser.client.get("/api/v1/alarms")
    assert answer.status_code == 200
    return [(alarm["name"], alarm["about"]) for alarm in answer.json["items"]]


def test_F30_an_old_transaction_raises_an_alarm_that_names_its_process(database_url, committed_db, clock, client_for, caplog):
    olga = client_for("olga")
    with connect(database_url, application_name="a-long-report") as reports:
        reports.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM job")
        assert found(olga) == []
        clock.advance(minutes=6)
        olga.sign_in("olga")
        about = f"process {reports.info.backend_pid}, a-long-report, idle in transaction"
        assert ("old_snapshot", about) in found(olga)
        page = olga.get("/operations").get_data(as_text=True)
        assert f"Process {reports.info.backend_pid}, a-long-report" in page and "keeps consumed rows from vacuum" in page
        with caplog.at_level(logging.WARNING):
            upkeep(committed_db, Kept(86400, []))
        assert f'alarm name=old_snapshot about="{about}" seconds=36' in caplog.text
        reports.execute("ROLLBACK")
    assert found(olga) == []


def test_F51_a_lease_that_nobody_takes_back_raises_an_alarm(committed_db: psycopg.Connection, clock, client_for):
    olga = client_for("olga")
    for make in rows.MAKERS.values():
        item = make(committed_db)
        table = make.__name__
        ends = "lease_expires_at = baton_clock() + interval '5 seconds'"
        lease = f"status = 'leased', lease_owner = 'w', lease_number = 1, leased_at = baton_clock(), {ends}"
        committed_db.execute(f"UPDATE {table} SET {lease} WHERE id = %s", (item,))
        clock.advance(seconds=60)
        assert found(olga) == [], table
        clock.advance(seconds=10)
        assert found(olga) == [("expired_lease", "")], table
        assert "that should have happened by now" in olga.get("/operations").get_data(as_text=True)
        committed_db.execute(f"DELETE FROM {table}")
        assert found(olga) == []


def test_F32_an_index_that_is_not_valid_raises_an_alarm_and_one_being_built_does_not(database_url, committed_db, client_for):
    olga = client_for("olga")
    twins = [rows.job(committed_db), rows.job(committed_db)]
    building = threading.Thread(target=_build, args=(database_url,))
    with connect(database_url) as writer:
        writer.execute("BEGIN")
        writer.execute("UPDATE job SET priority = 6 WHERE id = %s", (twins[0],))
        building.start()  # it waits for the writer, with an index that is not valid yet
        until(lambda: committed_db.execute("SELECT 1 FROM pg_index WHERE NOT indisvalid").fetchone(), "the index to be begun", seconds=20)
        assert found(olga) == []
        writer.execute("COMMIT")
    building.join(20)  # it fails, for it is to be unique and is not, and leaves what it began
    assert found(olga) == [("invalid_index", "ix_left_behind")]
    assert "<code>ix_left_behind</code>" in olga.get("/operations").get_data(as_text=True)
    committed_db.execute("DROP INDEX ix_left_behind")
    assert found(olga) == []


def _build(url: str) -> None:
    with connect(url) as conn, suppress(psycopg.errors.UniqueViolation):
        conn.execute("CREATE UNIQUE INDEX CONCURRENTLY ix_left_behind ON job (kind)")


def test_a_month_without_a_partition_raises_an_alarm_before_it_begins(committed_db: psycopg.Connection, clock, client_for):
    olga = client_for("olga")
    clock.advance(days=120)
    olga.sign_in("olga")
    assert [name for name, _ in found(olga)] == ["missing_partition"]


def test_F34_the_overview_shows_what_the_history_takes_and_since_when(committed_db: psycopg.Connection, client_for):
    (since,) = committed_db.execute("SELECT to_char(baton_now() AT TIME ZONE 'UTC', 'YYYY-MM')").fetchone() or ("",)
    page = client_for("olga").get("/operations").get_data(as_text=True)
    assert f"since {since}" in page and re.search(r"\d [kM]B", page.split("History</span>")[1][:80])


def test_alarms_are_for_operators(client_for):
    assert client_for("ada").client.get("/api/v1/alarms").status_code == 403
