"""Nothing that Baton does hangs from a session of the database: no lock that outlives its transaction, no channel that it listens to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, ROOT, name, python_files, texts

SESSION_LOCK = re.compile(r"\bpg_(?:try_)?advisory_(?:lock|unlock)", re.IGNORECASE)
CHANNEL = re.compile(r"^\s*(?:UN)?LISTEN\s+[a-z_]|\bNOTIFY\s+[a-z_]|\bpg_notify\b", re.MULTILINE)
ALLOWED = {"engine/db/migrate.py": "one migration at a time; its session is a connection of its own that ends with it"}


def _all_sql() -> list[tuple[str, str]]:
    """(file, text) of whatever may be sent to the database."""
    written = [(name(path), text) for path in python_files() for _, text in texts(path)]
    files: list[Path] = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.sql"))]
    return written + [(name(path), path.read_text(encoding="utf-8")) for path in files]


def test_F7_no_lock_outlives_its_transaction_but_that_of_the_migrations():
    assert {file for file, text in _all_sql() if SESSION_LOCK.search(text)} == set(ALLOWED)


def test_F24_F25_F26_F27_nothing_notifies_and_nothing_listens():
    assert [file for file, text in _all_sql() if CHANNEL.search(text)] == []


@pytest.mark.parametrize("text", ["NOTIFY work", "LISTEN work", "SELECT pg_notify('work', '')", "INSERT INTO a; NOTIFY b", "UNLISTEN x"])
def test_channels_are_recognised(text: str):
    assert CHANNEL.search(text)


@pytest.mark.parametrize("text", ["SELECT pg_advisory_lock(1)", "SELECT pg_try_advisory_lock(1)", "pg_advisory_unlock_all()"])
def test_session_locks_are_recognised(text: str):
    assert SESSION_LOCK.search(text)
    assert not SESSION_LOCK.search("SELECT pg_advisory_xact_lock(1)")
