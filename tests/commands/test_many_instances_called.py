"""S37 within calls: a called process begins many instances, and an activity calls many processes, in bounded steps each."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.cancel import cancel_instance, cancel_some
from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import continue_loop
from engine.commands.outcome import CaseShrunk, Deployed, InstanceCancelled, ItemDone, TaskCompleted
from engine.core.loops import BATCH
from engine.db.acquire import acquire_jobs
from tests.bpmn.models import HEADER
from tests.cast import ADA, OP, engage
from tests.commands.cases import lease_of, started, status
from tests.rows import one

Connection = psycopg.Connection[Any]
NUMBER = BATCH + 20
LOOP = f"<multiInstanceLoopCharacteristics><loopCardinality>{NUMBER}</loopCardinality></multiInstanceLoopCharacteristics>"


def process(key: str, activity: str) -> str:
    start, end = f'<startEvent id="{key}_s"/>', f'<endEvent id="{key}_e"/>'
    flows = "".join(
        f'<sequenceFlow id="{key}_{source}{target}" sourceRef="{key}_{source}" targetRef="{key}_{target}"/>'
        for source, target in ("sa", "ae")
    )
    return f'<process id="{key}" isExecutable="true">{start}{activity}{end}{flows}</process>'


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def begin(conn: Connection, *processes: str) -> UUID:
    file = f"{HEADER}{''.join(processes)}</definitions>".encode()
    outcome = deploy(conn, [("m.bpmn", file)], actor=OP)
    assert isinstance(outcome, Deployed), outcome
    return started(conn, "outer").instance_id


def go_on(conn: Connection) -> int:
    steps = 0
    while found := acquire_jobs(conn, owner="w", capabilities=[("continue", "")], limit=1, lease_seconds=30, workers=1):
        outcome = continue_loop(conn, lease_of(found[0]))
        assert isinstance(outcome, ItemDone), outcome
        steps += 1
    return steps


def complete_all(conn: Connection, case: UUID) -> int:
    tasks = conn.execute("SELECT id FROM user_task WHERE root_id = %s AND status = 'claimed'", (case,)).fetchall()
    for (task,) in tasks:
        outcome = complete_task(conn, task, actor=ADA, variables={}, request_id=None)
        assert isinstance(outcome, TaskCompleted), outcome
    return len(tasks)


def test_a_called_process_begins_many_instances_in_steps(conn: Connection) -> None:
    task = f'<userTask id="inner_a" camunda:assignee="ada">{LOOP}</userTask>'
    case = begin(conn, process("outer", '<callActivity id="outer_a" calledElement="inner"/>'), process("inner", task))
    assert go_on(conn) == 1
    assert complete_all(conn, case) == NUMBER
    assert status(conn, case) == "completed"


def test_an_activity_calls_many_processes_in_steps(conn: Connection) -> None:
    call = f'<callActivity id="outer_a" calledElement="inner">{LOOP}</callActivity>'
    case = begin(conn, process("outer", call), process("inner", '<userTask id="inner_a" camunda:assignee="ada"/>'))
    assert one(conn, "SELECT count(*) FROM process_instance WHERE root_id = %s", case) == 1 + BATCH
    assert go_on(conn) == 1
    assert complete_all(conn, case) == NUMBER
    assert status(conn, case) == "completed"
    assert one(conn, "SELECT count(*) FROM process_instance WHERE root_id = %s AND status <> 'completed'", case) == 0


def test_cancelled_in_the_middle_nothing_of_it_is_left(conn: Connection) -> None:
    call = f'<callActivity id="outer_a" calledElement="inner">{LOOP}</callActivity>'
    case = begin(conn, process("outer", call), process("inner", '<userTask id="inner_a" camunda:assignee="ada"/>'))
    assert isinstance(cancel_instance(conn, case, actor=OP, reason="", request_id=None), InstanceCancelled)
    for item in acquire_jobs(conn, owner="w", capabilities=[("cancel", "")], limit=1, lease_seconds=30, workers=1):
        while isinstance(cancel_some(conn, lease_of(item)), CaseShrunk):
            pass
    assert one(conn, "SELECT count(*) FROM process_instance WHERE root_id = %s AND status <> 'cancelled'", case) == 0
    left = [one(conn, f"SELECT count(*) FROM {table} WHERE root_id = %s", case) for table in ("job", "token")]
    assert left == [0, 0]
    assert go_on(conn) == 0
