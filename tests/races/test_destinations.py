"""Workers that acquire from one destination at the same moment: never more at a time than it takes, never two of a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from engine.db.acquire import Acquired, acquire_deliveries
from engine.db.lines import Lines
from engine.db.session import connect
from tests import rows
from tests.commands.test_destinations import add, in_line
from tests.races.contest import Contender, held_at
from tests.races.test_leaf_races import LATE_SNAPSHOT

Connection = psycopg.Connection[Any]
SENDING = "SELECT count(*) FROM delivery WHERE status = 'leased'"


def acquire(conn: Connection, *, owner: str = "w", limit: int = 10) -> list[Acquired]:
    return acquire_deliveries(conn, owner=owner, kinds={"http"}, limit=limit, lease_seconds=30, workers=4)


def test_two_acquisitions_at_once_do_not_take_more_than_the_destination_does(
    committed_db: Connection, database_url: str, tmp_path: Path
) -> None:
    """The second begins while the first has written its leases and not committed: it goes by, and waits for nobody."""
    route = add(committed_db, concurrency=3)
    for _ in range(10):
        rows.delivery(committed_db, route=route, overdue=9)
    free = rows.delivery(committed_db)
    with held_at(database_url, "acquire.before_commit", lambda conn: acquire(conn, owner="first", limit=2), tmp_path) as first:
        assert [each.item_id for each in acquire(committed_db, owner="second")] == [free], "what is of no destination goes on"
    assert len(first.outcome()) == 2
    assert len(acquire(committed_db, owner="third")) == 1
    assert acquire(committed_db, owner="fourth") == []


def test_an_acquisition_whose_snapshot_is_older_than_the_last_one_takes_nothing(committed_db: Connection, database_url: str) -> None:
    """It counted before the other committed, and has the destination's lock after: `turns` has moved on."""
    route = add(committed_db, concurrency=2)
    for _ in range(2):
        rows.delivery(committed_db, route=route)
    committed_db.execute(LATE_SNAPSHOT)
    with connect(database_url) as gate:
        gate.execute("SELECT pg_advisory_lock(4711)")
        late = Contender(database_url, lambda conn: acquire(conn, owner="late"), "late").seen_waiting(committed_db)
        older = {rows.delivery(committed_db, route=route, overdue=9) for _ in range(2)}  # so that the two do not want the same rows
        assert {each.item_id for each in acquire(committed_db, owner="first")} == older
        gate.execute("SELECT pg_advisory_unlock(4711)")
        assert late.outcome() == []
    assert rows.one(committed_db, SENDING) == 2


def test_two_workers_that_let_a_line_move_on_let_go_of_one(committed_db: Connection, database_url: str) -> None:
    """One has let go of the first and not committed; an older one becomes visible meanwhile, and the other lets go of that."""
    route = add(committed_db)
    in_line(committed_db, route, "ada", 1)
    with connect(database_url) as one:
        one.execute("BEGIN")
        one.execute("SELECT baton_next_in_line('', '', '', 10)")
        older = in_line(committed_db, route, "ada", 1)[0]
        committed_db.execute("UPDATE delivery SET created_at = created_at - interval '1 hour' WHERE id = %s", (older,))
        other = Contender(database_url, lambda conn: Lines().move_on(conn)).seen_waiting(committed_db)
        one.execute("COMMIT")
        assert other.outcome() is True, "it looks again"
    assert rows.one(committed_db, "SELECT count(*) FROM delivery WHERE held = '{}'") == 1


def test_who_locks_the_next_of_a_line_holds_up_no_worker(committed_db: Connection, database_url: str) -> None:
    route = add(committed_db)
    [first] = in_line(committed_db, route, "ada", 1)
    [other] = in_line(committed_db, route, "bo", 1)
    with connect(database_url) as somebody:
        somebody.execute("BEGIN")
        somebody.execute("SELECT FROM delivery WHERE id = %s FOR UPDATE", (first,))
        Lines().move_on(committed_db)
        assert [each.item_id for each in acquire(committed_db)] == [other]
        somebody.execute("COMMIT")
    Lines().move_on(committed_db)
    assert [each.item_id for each in acquire(committed_db)] == [first]
