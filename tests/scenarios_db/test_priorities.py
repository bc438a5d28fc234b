"""S59: a flood of high priority starves nobody. An hour of two busy workers, minute by minute on a moved clock."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.jobs import fail_job
from engine.commands.outcome import ItemFailed, Lease
from engine.db.acquire import Acquired, acquire_jobs
from engine.expressions import parse
from tests.commands.cases import deployed, started
from tests.conftest import Clock
from tests.core.models import model, service
from tests.plans import crowd
from tests.rows import one

Connection = psycopg.Connection[Any]
KINDS = [("service", topic) for topic in ("flood", "low", "broken")] + [("timer", "")]
A_MINUTE = 60  # flood jobs that come in one
WORKED_OFF = 48  # jobs that both workers together end in one: less than come
LEVELS = 9 * 60.0  # seconds that a job of level 0 may be passed by newer work of level 9: the documented bound


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    crowd.a_case(committed_db)
    return committed_db


def put(conn: Connection, count: int, topic: str, level: int, *, kind: str = "service") -> None:
    """So many jobs, due now and one after the other."""
    conn.execute(
        "INSERT INTO job (id, kind, topic, element_id, instance_id, root_id, definition_id, priority, level, max_attempts,"
        " due_at, available_at)"
        f" SELECT {crowd.NEW_ID}, %s, %s, 'work', {crowd.INSTANCE}, {crowd.INSTANCE}, {crowd.DEFINITION}, %s, %s, 3, at, at"
        " FROM (SELECT baton_clock() + g * interval '1 ms' AS at FROM generate_series(1, %s) g) g",
        (kind, topic, level, level, count),
    )


def minute(conn: Connection, taken: list[Acquired]) -> None:
    """Two workers take turns, a few jobs at a time; what is broken fails at once, the rest is done."""
    left = WORKED_OFF
    while left > 0:
        for owner in ("one", "two"):
            found = acquire_jobs(conn, owner=owner, capabilities=KINDS, limit=4, lease_seconds=30, workers=2)
            left -= 4
            taken += found
            for item in found:
                if item.topic == "broken":
                    assert isinstance(fail_job(conn, Lease(item.kind, item.item_id, item.number, item.owner), error="no"), ItemFailed)
            conn.execute("DELETE FROM job WHERE id = ANY (%s)", ([item.item_id for item in found if item.topic != "broken"],))


def test_S59_F19_a_flood_of_high_priority_keeps_low_jobs_and_a_timer_waiting_for_a_bounded_time(conn: Connection, clock: Clock) -> None:
    put(conn, 10, "low", 0)
    put(conn, 1, "", 5, kind="timer")
    put(conn, 500, "broken", 5)
    came: dict[UUID, float] = {}  # when each job became due first, in seconds from the beginning
    waited: dict[str, list[float]] = defaultdict(list)
    order: list[UUID] = []
    beginning = one(conn, "SELECT baton_clock()")
    for now in range(60):
        put(conn, A_MINUTE, "flood", 9)
        rows = conn.execute("SELECT id, extract(epoch FROM due_at - %s)::float8 FROM job", (beginning,)).fetchall()
        came.update({key: at for key, at in rows if key not in came})
        taken: list[Acquired] = []
        minute(conn, taken)
        for item in taken:
            waited[item.topic or item.job_kind].append(now * 60 - came[item.item_id])
            order += [item.item_id] if item.topic == "flood" else []
        # The bound: nothing that was taken came more than nine minutes after something that waits.
        oldest = one(conn, "SELECT extract(epoch FROM min(available_at) - %s)::float8 FROM job WHERE topic = 'low'", beginning)
        if oldest is not None and taken:
            assert max(came[item.item_id] for item in taken) <= oldest + LEVELS + 60
        clock.advance(seconds=60)
    assert (len(waited["low"]), len(waited["timer"])) == (10, 1)
    most = LEVELS * A_MINUTE / WORKED_OFF + 180  # all that may come before them, at the pace of the workers, and the broken ones' share
    assert max(waited["low"] + waited["timer"]) <= most + 500 * 60 / WORKED_OFF
    # Equals are first come, first served.
    assert [came[key] for key in order] == sorted(came[key] for key in order)
    # What fails comes again three times at most, behind what waited meanwhile, and then rests beside an incident.
    attempts = conn.execute("SELECT attempts, status, count(*) FROM job WHERE topic = 'broken' GROUP BY 1, 2").fetchall()
    assert sum(number * count for number, _, count in attempts) == len(waited["broken"])
    assert {(number, status) for number, status, _ in attempts} <= {(1, "available"), (2, "available"), (3, "failed")}
    assert one(conn, "SELECT count(*) FROM incident") == sum(count for number, _, count in attempts if number == 3) > 0
    assert len(order) > 60 * WORKED_OFF / 2, "the flood itself goes on"


def test_S59_five_hundred_that_fail_and_retry_at_once_do_not_come_back_before_their_wait(conn: Connection, clock: Clock) -> None:
    put(conn, 500, "broken", 9)
    put(conn, 20, "low", 0)
    conn.execute("UPDATE job SET retry = 'R3/PT1H' WHERE topic = 'broken'")  # longer than the slowest machine takes for what follows
    taken: list[Acquired] = []
    while len(taken) < 520:
        minute(conn, taken)
    assert [item.topic for item in taken].count("low") == 20
    assert max(item.attempt for item in taken if item.topic == "broken") == 1
    clock.advance(seconds=2 * 3600)
    minute(conn, taken)
    assert {item.attempt for item in taken[520:]} == {2}


def test_S59_a_priority_of_fifty_as_other_engines_have_it_is_the_highest_level(conn: Connection) -> None:
    deployed(conn, model("start -> w -> end", w=service("flood", priority=parse("50"))))
    started(conn)
    assert conn.execute("SELECT priority, level FROM job").fetchall() == [(9, 9)]
