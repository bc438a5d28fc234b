"""A worker that dies between two steps of a signal's way: nobody has it twice, nobody is missed."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from engine.commands.outcome import SignalThrown
from engine.commands.signals import broadcast_signal
from tests.cast import OP, engage
from tests.commands.cases import deployed, started
from tests.core.models import catch, model
from tests.worker.processes import WorkerProcess, eventually, row, worker

pytestmark = [pytest.mark.faults, pytest.mark.slow]
Connection = psycopg.Connection[Any]
MANY = 300
RECEIVERS = 20  # of each step: tests.faults.small_steps


def test_R6_a_worker_killed_between_two_steps_of_a_signal_reaches_everybody_once(database_url, committed_db: Connection, tmp_path):
    engage(committed_db)
    deployed(committed_db, replace(model("start -> wait -> end", wait=catch(signal="GO")), key="waits"))
    committed_db.execute("UPDATE process_definition SET xml = %s", (MODEL,))
    for _ in range(MANY):
        started(committed_db, "waits")
    assert isinstance(broadcast_signal(committed_db, "GO", actor=OP, variables={"x": 1}), SignalThrown)

    # How many commands a worker has run before its first step depends on its chores: each one dies one command later,
    # and even the last of them too early to reach everybody.
    for passage in range(2, MANY // RECEIVERS - 2):
        dies = {"failpoints": f"command.after_commit#{passage}=kill", "handlers": "tests.faults.small_steps"}
        with WorkerProcess(database_url, tmp_path / f"dies-{passage}.log", **dies) as process:
            assert process.died(seconds=60) == -signal.SIGKILL
        (reached,) = row(committed_db, "SELECT coalesce((payload->>'reached')::int, 0) FROM job WHERE kind = 'throw'")
        if reached:
            break
    assert 0 < reached <= passage * RECEIVERS < MANY, f"expected a death between two steps, found {reached} of {MANY} reached"
    late = started(committed_db, "waits")

    with worker(database_url, tmp_path, "goes_on", recovery_seconds="0.5"):
        finished = "SELECT count(*) FROM process_instance WHERE status = 'completed'"
        eventually(lambda: row(committed_db, finished)[0] >= MANY, "everybody to have it", seconds=90)
        eventually(lambda: row(committed_db, "SELECT count(*) FROM job")[0] == 0, "every job to end", seconds=30)
    caught = "SELECT count(*), count(DISTINCT instance_id) FROM history WHERE kind = 'signal_caught'"
    assert row(committed_db, caught) == (MANY, MANY)
    assert row(committed_db, "SELECT status FROM process_instance WHERE id = %s", late.instance_id) == ("running",)


MODEL = b"""<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="urn:test"><signal id="go" name="GO"/>
<process id="waits" isExecutable="true"><startEvent id="start"/><intermediateCatchEvent id="wait"><signalEventDefinition signalRef="go"/>
</intermediateCatchEvent><endEvent id="end"/><sequenceFlow id="a" sourceRef="start" targetRef="wait"/>
<sequenceFlow id="b" sourceRef="wait" targetRef="end"/></process></definitions>"""
