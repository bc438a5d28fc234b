"""A bad schedule harms only itself: one incident at that timer, and everything else goes on."""

from __future__ import annotations

import zoneinfo
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.jobs import fire_timer
from engine.commands.outcome import InstanceStarted, ItemDone, ItemFailed, Rejected
from engine.commands.start_by_timer import start_by_timer
from engine.db import definitions
from engine.db.acquire import acquire_jobs
from engine.ids import new_id
from tests import rows
from tests.bpmn.models import HEADER
from tests.cast import engage
from tests.commands.cases import acquired, kinds, places, started
from tests.commands.test_deploy import process, put, timer
from tests.commands.test_schedules import reminded
from tests.conftest import Clock

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def incidents(conn: Connection) -> list[tuple[str, str]]:
    return conn.execute("SELECT element_id, message FROM incident ORDER BY created_at").fetchall()


def zoned(cycle: str, zone: str, key: str = "p") -> bytes:
    return process(key, start=timer("timeCycle", cycle).replace("<timerEventDefinition", f'<timerEventDefinition baton:timeZone="{zone}"'))


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Zones that a later release of tzdata does not have any more, in a process that has read no definition yet."""

    def gone(*names: str) -> None:
        known = zoneinfo.ZoneInfo

        def look(name: str) -> zoneinfo.ZoneInfo:
            if name in names:
                raise zoneinfo.ZoneInfoNotFoundError(name)
            return known(name)

        monkeypatch.setattr("engine.zones.zoneinfo.ZoneInfo", look)
        definitions._kept.clear()

    return gone


def test_a_start_timer_that_cannot_be_counted_on_is_an_incident_and_the_others_start(conn: Connection, clock: Clock) -> None:
    put(conn, process("a", start=timer("timeCycle", "R/PT15M")), process("b", start=timer("timeCycle", "R/PT15M")))
    conn.execute(
        "UPDATE job SET payload = jsonb_set(payload, '{cycle}', '\"R/soon\"')"
        " WHERE definition_id = (SELECT id FROM process_definition WHERE key = 'a')"
    )
    clock.advance(minutes=16)
    ended = {type(start_by_timer(conn, lease)) for lease in acquired(conn)}
    assert ended == {ItemFailed, ItemDone}
    assert [(element, "R/soon" in message) for element, message in incidents(conn)] == [("s", True)]
    assert conn.execute("SELECT d.key FROM process_instance i JOIN process_definition d ON d.id = i.definition_id").fetchall() == [("b",)]
    assert conn.execute("SELECT status FROM job ORDER BY status").fetchall() == [("available",), ("failed",)]


def test_a_boundary_cycle_that_cannot_be_counted_on_is_an_incident_beside_its_task_which_goes_on(conn: Connection, clock: Clock) -> None:
    put(conn, reminded("R/PT10M"))
    instance = started(conn, "p").instance_id
    conn.execute("UPDATE job SET payload = jsonb_set(payload, '{cycle}', '\"R/soon\"')")
    clock.advance(minutes=11)
    (lease,) = acquired(conn)
    assert isinstance(fire_timer(conn, lease), ItemDone)
    assert places(conn, instance) == [("t", "failed"), ("u", "waiting")]
    assert [element for element, _ in incidents(conn)] == ["t"]


def test_F36_a_zone_that_is_gone_is_an_incident_of_the_timer_that_needs_it_and_names_it(
    conn: Connection, clock: Clock, without: Any
) -> None:
    put(conn, zoned("0 * * * *", "Europe/Berlin", "a"), zoned("0 * * * *", "America/New_York", "b"))
    without("Europe/Berlin")
    clock.advance(minutes=61)
    ended = {type(start_by_timer(conn, lease)) for lease in acquired(conn)}
    assert ended == {ItemFailed, ItemDone}
    ((element, message),) = incidents(conn)
    assert element == "s"
    assert "expected a time zone of tzdata" in message and "Europe/Berlin" in message


def test_F36_a_process_with_a_timer_whose_zone_is_gone_runs_up_to_that_timer(conn: Connection, without: Any) -> None:
    waits = (
        '<startEvent id="s"/><userTask id="u" camunda:assignee="ada"/><parallelGateway id="g"/>'
        '<sequenceFlow id="a" sourceRef="s" targetRef="g"/><sequenceFlow id="b" sourceRef="g" targetRef="u"/>'
        '<sequenceFlow id="c" sourceRef="g" targetRef="t"/><endEvent id="e"/><sequenceFlow id="d" sourceRef="u" targetRef="e"/>'
        '<intermediateCatchEvent id="t"><timerEventDefinition baton:timeZone="Europe/Berlin"><timeDuration>P1D</timeDuration>'
        '</timerEventDefinition></intermediateCatchEvent><endEvent id="f"/><sequenceFlow id="h" sourceRef="t" targetRef="f"/>'
    )
    put(conn, f'{HEADER}<process id="p" isExecutable="true">{waits}</process></definitions>'.encode())
    without("Europe/Berlin")
    begun = started(conn, "p")
    assert isinstance(begun, InstanceStarted)
    assert places(conn, begun.instance_id) == [("t", "failed"), ("u", "waiting")]
    ((element, message),) = incidents(conn)
    assert element == "t" and "Europe/Berlin" in message
    assert "task_created" in kinds(conn, begun.instance_id)


def test_a_zone_that_is_gone_is_refused_in_what_is_deployed_now(conn: Connection, without: Any) -> None:
    from engine.commands.deploy import deploy
    from tests.cast import OP

    without("Europe/Berlin")
    refused = deploy(conn, [("a", zoned("0 8 * * *", "Europe/Berlin"))], actor=OP)
    assert isinstance(refused, Rejected)
    assert [(p.element_id, "'Europe/Berlin'" in p.what, "tzdata" in p.why) for p in refused.problems] == [("s", True, True)]


@pytest.mark.parametrize("place", ["process", "definitions"])
def test_a_zone_on_what_is_around_a_timer_is_its_zone(conn: Connection, place: str) -> None:
    text = process(start=timer("timeCycle", "0 8 * * *")).decode().replace(f"<{place} ", f'<{place} baton:timeZone="Asia/Kolkata" ', 1)
    put(conn, text.encode())
    assert rows.one(conn, "SELECT to_char(due_at, 'HH24:MI') FROM job") == "02:30"


def test_of_ten_thousand_timers_that_are_due_at_once_each_look_takes_a_batch_the_oldest_first(conn: Connection, clock: Clock) -> None:
    put(conn, reminded("R/PT10M"))
    started(conn, "p")
    first: UUID = rows.one(conn, "SELECT id FROM job")
    conn.cursor().executemany(
        "INSERT INTO job SELECT (jsonb_populate_record(j, jsonb_build_object('id', %s::uuid,"
        " 'due_at', j.due_at - make_interval(secs => %s),"
        " 'available_at', j.available_at - make_interval(secs => %s)))).* FROM job j WHERE id = %s",
        [(new_id(), n / 100, n / 100, first) for n in range(1, 10_000)],
    )
    clock.advance(minutes=11)
    taken = [acquire_jobs(conn, owner=f"w{n}", capabilities=[("timer", "")], limit=8, lease_seconds=30, workers=2) for n in range(2)]
    assert [len(batch) for batch in taken] == [8, 8]
    assert rows.one(conn, "SELECT count(*) FROM job WHERE status = 'leased'") == 16
    assert rows.one(conn, "SELECT max(due_at) FROM job WHERE status = 'leased'") < rows.one(
        conn, "SELECT min(due_at) FROM job WHERE status = 'available'"
    )
