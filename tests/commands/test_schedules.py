"""Schedules: one catch-up after a downtime, with the number missed; and no occurrence fires twice (F37, F38)."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine import failpoints
from engine.bpmn import times
from engine.bpmn.cron import CronTimer, next_by_cron
from engine.commands.jobs import fire_timer
from engine.commands.outcome import ItemDone
from engine.commands.start_by_timer import start_by_timer
from engine.commands.upkeep import Kept, upkeep
from engine.db.acquire import recover_expired
from engine.ids import new_id
from tests import rows
from tests.bpmn.models import HEADER
from tests.cast import engage
from tests.commands.cases import acquired, started
from tests.commands.test_deploy import due, process, put, timer
from tests.conftest import Clock
from tests.races.contest import Contender, held_at

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def reminded(cycle: str) -> bytes:
    """A task with a boundary cycle that does not interrupt."""
    return (
        f'{HEADER}<process id="p" isExecutable="true"><startEvent id="s"/><userTask id="u" name="Work"/><endEvent id="e"/>'
        '<sequenceFlow id="a" sourceRef="s" targetRef="u"/><sequenceFlow id="b" sourceRef="u" targetRef="e"/>'
        '<boundaryEvent id="t" attachedToRef="u" cancelActivity="false">'
        f"<timerEventDefinition><timeCycle>{cycle}</timeCycle></timerEventDefinition></boundaryEvent>"
        '<endEvent id="n"/><sequenceFlow id="c" sourceRef="t" targetRef="n"/></process></definitions>'
    ).encode()


def fired(conn: Connection) -> list[tuple[datetime, int]]:
    """(due, missed) of each firing, in its order."""
    return conn.execute("SELECT due_at, missed FROM timer_firing ORDER BY due_at").fetchall()


def told(conn: Connection) -> list[int | None]:
    """What the history says was missed, firing by firing."""
    return [row[0] for row in conn.execute("SELECT (data->>'missed')::int FROM history WHERE kind = 'timer_fired' ORDER BY id")]


def twin(conn: Connection) -> UUID:
    """A second job of the occurrence that is pending, as a fault would leave it behind: of a version of its own if it is a start."""
    key = new_id()
    conn.execute(
        "INSERT INTO process_definition SELECT (jsonb_populate_record(d, jsonb_build_object('id', %s::uuid, 'version', 100))).*"
        " FROM process_definition d",
        (key,),
    )
    job = new_id()
    conn.execute(
        "INSERT INTO job SELECT (jsonb_populate_record(j, jsonb_build_object('id', %s::uuid, 'definition_id',"
        " CASE WHEN j.instance_id IS NULL THEN %s::uuid ELSE j.definition_id END))).* FROM job j",
        (job, key),
    )
    return job


def test_F38_after_a_downtime_one_start_catches_up_and_the_number_missed_is_recorded(conn: Connection, clock: Clock) -> None:
    put(conn, process(start=timer("timeCycle", "R/PT15M")))
    (first,) = due(conn)
    clock.advance(minutes=65)
    (lease,) = acquired(conn)
    start_by_timer(conn, lease)
    assert fired(conn) == [(first, 3)], "due at 15; 30, 45 and 60 have passed"
    assert told(conn) == [3]
    assert conn.execute("SELECT due_at, (payload->>'missed')::int FROM job").fetchall() == [(first + timedelta(minutes=60), 3)]
    clock.advance(minutes=10)
    (lease,) = acquired(conn)
    start_by_timer(conn, lease)
    assert [missed for _, missed in fired(conn)] == [3, 0]
    assert told(conn) == [3, None]
    assert rows.one(conn, "SELECT payload->>'missed' FROM job") is None
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 2


def test_F38_a_boundary_cycle_fires_once_after_a_downtime_and_says_what_was_missed(conn: Connection, clock: Clock) -> None:
    put(conn, reminded("R/PT10M"))
    started(conn, "p")
    (first,) = [row[0] for row in conn.execute("SELECT due_at FROM job")]
    clock.advance(minutes=65)
    (lease,) = acquired(conn)
    assert isinstance(fire_timer(conn, lease), ItemDone)
    assert (fired(conn), told(conn)) == ([(first, 5)], [5])
    assert acquired(conn) == [], "the next one lies ahead"
    assert conn.execute("SELECT due_at, (payload->>'missed')::int FROM job").fetchall() == [(first + timedelta(minutes=60), 5)]


def test_F38_of_a_cycle_with_a_count_only_what_was_left_is_missed(conn: Connection, clock: Clock) -> None:
    put(conn, reminded("R3/PT10M"))
    started(conn, "p")
    clock.advance(hours=5)
    (lease,) = acquired(conn)
    fire_timer(conn, lease)
    assert told(conn) == [2]
    assert rows.one(conn, "SELECT count(*) FROM job") == 0


@pytest.mark.parametrize("of_a_case", [False, True])
def test_what_cron_missed_is_counted_once_for_what_is_told_and_the_next_job(
    conn: Connection, clock: Clock, monkeypatch: pytest.MonkeyPatch, of_a_case: bool
) -> None:
    every_minute = "* * * * *"
    put(conn, reminded(every_minute) if of_a_case else process(start=timer("timeCycle", every_minute)))
    if of_a_case:
        started(conn, "p")
    clock.advance(minutes=31)
    (lease,) = acquired(conn)
    looked: list[datetime] = []

    def next_time(timer: CronTimer, after: datetime) -> datetime | None:
        looked.append(after)
        return next_by_cron(timer, after)

    monkeypatch.setattr(times, "next_by_cron", next_time)
    assert isinstance(fire_timer(conn, lease) if of_a_case else start_by_timer(conn, lease), ItemDone)
    (missed,) = told(conn)
    assert missed is not None and missed >= 29
    assert rows.one(conn, "SELECT (payload->>'missed')::int FROM job") == missed
    assert len(looked) == missed + 2, "each that passed, the one that ends the count, and the next one to be due"


def test_F37_two_replicas_with_two_jobs_of_one_occurrence_start_one_case(
    conn: Connection, database_url: str, clock: Clock, tmp_path: Path
) -> None:
    put(conn, process(start=timer("timeCycle", "R/PT15M")))
    twin(conn)
    clock.advance(minutes=16)
    one, other = acquired(conn)
    with held_at(database_url, "command.before_commit", lambda c: start_by_timer(c, one), tmp_path) as first:
        second = Contender(database_url, lambda c: start_by_timer(c, other)).seen_waiting(conn)
    assert isinstance(first.outcome(), ItemDone)
    assert second.outcome() == ItemDone(other.item_id, other.number), "it ends, and has started nothing"
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 1
    assert len(fired(conn)) == 1
    assert rows.one(conn, "SELECT count(*) FROM job WHERE status <> 'available'") == 0
    assert len(due(conn)) == 1, "whoever fired has written the next one"


def test_F37_an_occurrence_within_a_case_fires_once_however_many_jobs_it_has(conn: Connection, clock: Clock) -> None:
    put(conn, reminded("R/PT10M"))
    instance = started(conn, "p").instance_id
    twin(conn)
    clock.advance(minutes=11)
    one, other = acquired(conn)
    assert fire_timer(conn, one) == ItemDone(one.item_id, one.number, instance)
    before = rows.one(conn, "SELECT revision FROM process_instance")
    assert fire_timer(conn, other) == ItemDone(other.item_id, other.number)
    assert rows.one(conn, "SELECT revision FROM process_instance") == before, "the second changed nothing of the case"
    assert rows.one(conn, "SELECT count(*) FROM history WHERE kind = 'timer_fired'") == 1
    assert rows.one(conn, "SELECT count(*) FROM job") == 1


def test_F37_F38_a_crash_between_firing_and_writing_the_next_one_loses_and_doubles_nothing(
    conn: Connection, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(conn, process(start=timer("timeCycle", "R/PT15M")))
    (first,) = due(conn)
    clock.advance(minutes=16)
    (lease,) = acquired(conn)
    failpoints.install("command.before_commit=raise:once")
    with pytest.raises(failpoints.FailPointRaised):
        start_by_timer(conn, lease)
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 0
    assert (fired(conn), due(conn)) == ([], [first]), "all of it or nothing"
    clock.advance(seconds=31)
    recover_expired(conn, limit=10)
    (again,) = acquired(conn)
    start_by_timer(conn, again)
    assert (fired(conn), due(conn)) == ([(first, 0)], [first + timedelta(minutes=15)])
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 1


def test_a_schedule_goes_on_through_the_versions_that_do_not_change_it(conn: Connection, clock: Clock) -> None:
    put(conn, process(start=timer("timeCycle", "R/PT15M")))
    for name in ("b", "c"):
        clock.advance(minutes=15)
        (lease,) = acquired(conn)
        start_by_timer(conn, lease)
        put(conn, process(start=timer("timeCycle", "R/PT15M"), name=name))
    assert rows.one(conn, "SELECT count(DISTINCT schedule_id) FROM timer_firing") == 1
    put(conn, process(start=timer("timeCycle", "R/PT5M")))
    clock.advance(minutes=5)
    (lease,) = acquired(conn)
    start_by_timer(conn, lease)
    assert rows.one(conn, "SELECT count(DISTINCT schedule_id) FROM timer_firing") == 2


def test_a_job_of_an_older_release_has_a_schedule_too(conn: Connection, clock: Clock) -> None:
    put(conn, process(start=timer("timeCycle", "R/PT15M")))
    conn.execute("UPDATE job SET payload = payload - 'schedule'")
    for _ in range(2):
        clock.advance(minutes=15)
        (lease,) = acquired(conn)
        start_by_timer(conn, lease)
    assert rows.one(conn, "SELECT count(DISTINCT schedule_id) FROM timer_firing") == 1
    assert rows.one(conn, "SELECT payload->>'schedule' = (SELECT min(schedule_id::text) FROM timer_firing) FROM job") is True


def test_what_fired_a_month_ago_is_no_longer_kept(conn: Connection, clock: Clock) -> None:
    put(conn, process(start=timer("timeCycle", "R/PT15M")))
    for days in (29, 2):
        clock.advance(minutes=16)
        (lease,) = acquired(conn)
        start_by_timer(conn, lease)
        clock.advance(days=days)
    upkeep(conn, Kept(86_400, []))
    assert len(fired(conn)) == 1
