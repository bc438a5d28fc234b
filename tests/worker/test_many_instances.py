"""S37: a real worker begins the instances of a large activity; killed between two steps, another one goes on where it was."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg

from engine.core.loops import BATCH
from tests.worker.models import HEAD, deployed, started
from tests.worker.processes import WorkerProcess, eventually, row, worker

NUMBER = 4 * BATCH + 7
LOOP = f"<multiInstanceLoopCharacteristics><loopCardinality>{NUMBER}</loopCardinality></multiInstanceLoopCharacteristics>"
MODEL = (
    f'{HEAD}<process id="many" isExecutable="true"><startEvent id="start"/><sequenceFlow id="f1" sourceRef="start" targetRef="x"/>'
    f'<userTask id="x" camunda:candidateGroups="billing">{LOOP}</userTask></process></definitions>'
)
BEGUN = "SELECT count(*), count(DISTINCT data->>'loop') FROM history WHERE kind = 'element_entered' AND data ? 'loop'"


def test_S37_a_worker_killed_between_two_steps_loses_and_doubles_no_instance(
    database_url: str, committed_db: psycopg.Connection, tmp_path: Path
) -> None:
    deployed(committed_db, "many", MODEL.encode())
    started(committed_db, "many")
    with WorkerProcess(database_url, tmp_path / "one.log", failpoints="command.before_commit#2=kill") as process:
        assert process.died() == -signal.SIGKILL
    assert row(committed_db, BEGUN) == (2 * BATCH, 2 * BATCH)
    committed_db.execute("UPDATE job SET lease_expires_at = baton_clock() WHERE status = 'leased'")
    with worker(database_url, tmp_path, "two") as process:
        eventually(lambda: row(committed_db, "SELECT count(*) FROM user_task") == (NUMBER,), "all of them to begin")
    assert row(committed_db, BEGUN) == (NUMBER, NUMBER)
    assert row(committed_db, "SELECT count(*) FROM job") == (0,)
