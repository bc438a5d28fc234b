"""Signs of work: whether anything was committed, and what becomes due next."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.db.acquire import JOB
from engine.db.session import connect
from engine.db.watch import seconds_until_due, seen
from tests import rows

Connection = psycopg.Connection[Any]


def test_whatever_commits_changes_what_is_seen_whichever_commits_last(database_url: str, committed_db: Connection) -> None:
    with connect(database_url) as watcher, connect(database_url) as early, connect(database_url) as late:
        early.execute("BEGIN")
        rows.job(early, topic="of.the.early.one")
        before = seen(watcher)
        rows.job(late, topic="of.the.late.one")
        between = seen(watcher)
        assert between != before
        early.execute("COMMIT")
        assert seen(watcher) != between, "it began first and committed last"


def test_the_next_items_to_become_due_are_told_by_the_databases_clock(committed_db: Connection, clock: Any) -> None:
    assert seconds_until_due(committed_db, JOB, [("timer", ""), ("service", "known")]) == []
    for topic, seconds in (("known", 90), ("known", 40), ("unknown", 10), ("known", -10)):
        rows.job(committed_db, topic=topic, overdue=-seconds)
    branches = [("timer", ""), ("service", "known")]
    assert seconds_until_due(committed_db, JOB, branches) == pytest.approx([40], abs=5)
    assert seconds_until_due(committed_db, JOB, branches, most=5) == pytest.approx([40, 90], abs=5), "soonest first"
    clock.advance(seconds=60)
    assert seconds_until_due(committed_db, JOB, branches) == pytest.approx([30], abs=5)
    assert seconds_until_due(committed_db, JOB, branches, looked_ago=25, most=5) == pytest.approx([-20, 30], abs=5), "due since the look"


def test_what_failed_for_good_will_not_become_due(committed_db: Connection) -> None:
    rows.job(committed_db, topic="known", overdue=-20, status="failed")
    assert seconds_until_due(committed_db, JOB, [("service", "known")]) == []
