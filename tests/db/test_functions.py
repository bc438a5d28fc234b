"""The plpgsql functions: what the database has is what the files say, and what locks is volatile."""

from __future__ import annotations

import re

import psycopg
import pytest

from engine.db.functions import function_files

LOCKS = re.compile(r"FOR (NO KEY UPDATE|UPDATE|KEY SHARE)|pg_advisory|baton_lock|baton_open|baton_take")


def body(text: str) -> str:
    """What stands between the dollar quotes."""
    return text.split("$$")[1].strip()


@pytest.mark.parametrize("name", function_files())
def test_the_function_in_the_database_is_the_one_in_its_file(db: psycopg.Connection, name: str) -> None:
    rows = db.execute("SELECT prosrc FROM pg_proc WHERE proname = %s", (name,)).fetchall()
    assert [row[0].strip() for row in rows] == [body(function_files()[name])]


def test_no_function_of_ours_is_without_a_file(db: psycopg.Connection) -> None:
    found = {row[0] for row in db.execute("SELECT proname FROM pg_proc WHERE proname LIKE 'baton\\_%'")}
    assert found - {"baton_now", "baton_clock"} == set(function_files())


def test_every_function_that_locks_is_volatile(db: psycopg.Connection) -> None:
    # A STABLE one would read from the snapshot of its caller, taken before the lock was waited for.
    locking = [name for name, text in function_files().items() if LOCKS.search(body(text))]
    assert {"baton_lock_case", "baton_lock_delivery", "baton_lock_keys", "baton_open_subscriptions", "baton_take_message"} <= set(locking)
    for name in locking:
        assert db.execute("SELECT provolatile FROM pg_proc WHERE proname = %s", (name,)).fetchone() == ("v",), name


def test_the_read_is_stable_and_locks_nothing(db: psycopg.Connection) -> None:
    assert not LOCKS.search(body(function_files()["baton_read_case"]))
    assert db.execute("SELECT provolatile FROM pg_proc WHERE proname = 'baton_read_case'").fetchone() == ("s",)


def test_a_key_and_its_name_at_large_have_different_numbers(db: psycopg.Connection) -> None:
    numbers = db.execute(
        "SELECT baton_key_number('', 'PAID', '42'), baton_key_number('', 'PAID', ''), baton_key_number('', 'PAID', NULL),"
        " baton_key_number('t', 'PAID', '42'), hashtextextended('' || chr(31) || 'PAID' || chr(31) || '42', 0)"
    ).fetchone()
    assert numbers is not None
    assert len(set(numbers)) == 4 and numbers[0] == numbers[4]


def test_keys_are_taken_in_the_order_of_their_numbers_and_the_stronger_lock_wins(db: psycopg.Connection) -> None:
    db.execute("SELECT baton_lock_keys(ARRAY[7, 3]::bigint[], ARRAY[5, 3, 9]::bigint[])")
    held = db.execute(
        "SELECT objid::int, mode FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() ORDER BY objid"
    ).fetchall()
    assert held == [(3, "ExclusiveLock"), (5, "ShareLock"), (7, "ExclusiveLock"), (9, "ShareLock")]
