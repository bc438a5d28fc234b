"""Nothing that Baton does hangs from a session of the database: no lock that outlives its transaction, no channel that it listens to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, ROOT, name, python_files, texts

SESSION_LOCK = re.compile(r"\bpg_(?:try_)?advisory_(?:lock|unlock)", re.IGNORECASE)
SESSION_SETTING = re.compile(r"(?:\A|;)\s*SET (?!LOCAL\b)\w+ *(?:=|TO)|\bset_config\([^()]*, *false\)|\bCREATE TEMP", re.MULTILINE)
YARDSTICKS = {"cli/bench/raw_command.py"}  # measured without Baton, on connections of their own
CHANNEL = re.compile(r"^\s*(?:UN)?LISTEN\s+[a-z_]|\bNOTIFY\s+[a-z_]|\bpg_notify\b", re.MULTILINE)


def _all_sql() -> list[tuple[str, str]]:
    """(file, text) of whatever may be sent to the database."""
    written = [(name(path), text) for path in python_files() for _, text in texts(path)]
    files: list[Path] = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.sql"))]
    return written + [(name(path), path.read_text(encoding="utf-8")) for path in files]


def test_F7_F29_no_lock_outlives_its_transaction():
    assert [file for file, text in _all_sql() if SESSION_LOCK.search(text)] == []


def test_F29_nothing_is_set_for_a_session():
    assert [file for file, text in _all_sql() if SESSION_SETTING.search(text) and file not in YARDSTICKS] == []


def test_F24_F25_F26_F27_nothing_notifies_and_nothing_listens():
    assert [file for file, text in _all_sql() if CHANNEL.search(text)] == []


@pytest.mark.parametrize("text", ["NOTIFY work", "LISTEN work", "SELECT pg_notify('work', '')", "INSERT INTO a; NOTIFY b", "UNLISTEN x"])
def test_channels_are_recognised(text: str):
    assert CHANNEL.search(text)


@pytest.mark.parametrize("text", ["SET jit = off", "SELECT 1;\nSET statement_timeout TO 5", "SELECT set_config('a.b', '1', false)"])
def test_settings_of_a_session_are_recognised(text: str):
    assert SESSION_SETTING.search(text)
    assert not SESSION_SETTING.search(text.replace("SET ", "SET LOCAL ").replace("false", "true"))


@pytest.mark.parametrize("text", ["SELECT pg_advisory_lock(1)", "SELECT pg_try_advisory_lock(1)", "pg_advisory_unlock_all()"])
def test_session_locks_are_recognised(text: str):
    assert SESSION_LOCK.search(text)
    assert not SESSION_LOCK.search("SELECT pg_advisory_xact_lock(1)")
