"""Each rule of the storm's checker, on what a run without faults left: silent about it, and loud about each thing broken in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest

from tests.faults.storm.checker import Evidence, orphans, read_rows, violations
from tests.faults.storm.run import Plan, servers, stage
from tests.faults.storm.topology import Topology

pytestmark = [pytest.mark.faults, pytest.mark.slow]
COLUMNS = "at, root_id, instance_id, definition_id, kind, element_id, actor, item_id, data"


@dataclass(frozen=True, slots=True)
class Left:
    """A quiet run: its servers, and what it left as evidence."""

    topology: Topology
    evidence: Evidence


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    with servers(tmp_path_factory.mktemp("servers"), whole=False) as topology:
        plan = Plan(1, 6, faults=False, workers=1, webs=1)
        with stage(plan, topology, tmp_path_factory.mktemp("run"), print) as scene:
            report = scene.play()
            assert not report.found, "\n".join(report.lines())
            yield Left(topology, scene.evidence())


def _event(of: str, kind: str | None = None, *, actor: str | None = None, first: bool = False) -> str:
    """One event of a kind once more, under another kind or of another actor; `first`: before all others."""
    told = COLUMNS.replace("kind", f"'{kind or of}'")
    told = told.replace("actor", f"'{actor}'") if actor else told
    place, number = ("(id, ", "-1, ") if first else ("(", "")
    return (
        f"INSERT INTO history {place}{COLUMNS}) {'OVERRIDING SYSTEM VALUE ' if first else ''}"
        f"SELECT {number}{told} FROM history WHERE kind = '{of}' ORDER BY id LIMIT 1"
    )


RUNS_AGAIN = "UPDATE process_instance SET status = 'running', ended_at = NULL WHERE business_key = 'order-0'"
ENTRY = "INSERT INTO inbox_entry (task_id, kind, name, created_at) SELECT id, 'group', 'storm', created_at FROM user_task LIMIT 1"
SCOPE = "INSERT INTO scope (id, instance_id, path) SELECT id, id, '{}' FROM process_instance WHERE status = 'completed' LIMIT 1"
TASK = (
    "INSERT INTO user_task (id, instance_id, root_id, definition_id, element_id, name, sort_key, status, ended_by, ended_at)"
    " SELECT id, id, root_id, definition_id, 'answer', '', '', 'completed', 'ann', baton_clock() FROM process_instance LIMIT 1"
)
ONE_PARENT = "(SELECT parent_id FROM process_instance WHERE parent_id IS NOT NULL LIMIT 1)"
ROWS = {
    "its start was answered, and there is no": "DELETE FROM process_instance WHERE business_key = 'race-2'",
    "a case that nobody asked for": "UPDATE process_instance SET business_key = 'nobody' WHERE business_key = 'race-2'",
    "is left running": RUNS_AGAIN,
    "a running instance without any token": RUNS_AGAIN,
    "a scope of an instance that has ended": SCOPE,
    "rows of scope are left": SCOPE,
    "an inbox entry of a task that is not open": ENTRY,
    "a delivery is left failed": "UPDATE delivery SET status = 'failed', ended_at = NULL",
    "called its process more than once": f"UPDATE process_instance SET parent_id = {ONE_PARENT} WHERE parent_id IS NOT NULL",
    "one message was received 2 times": _event("message_correlated"),
    "whose sender was never told": "UPDATE history SET data = data || '{\"message_id\": \"0\"}' WHERE kind = 'message_correlated'",
    "nobody received it, and it is gone": "DELETE FROM history WHERE kind = 'message_correlated'",
    "answered as stored, and no event": "DELETE FROM history WHERE kind = 'message_stored'",
    "was accepted, and no event says so": "DELETE FROM history WHERE kind = 'external_task_completed'",
    "expected also element_left fork": "DELETE FROM history WHERE kind = 'element_left' AND element_id = 'fork'",
    "found also instance_completed": _event("instance_completed"),
    "lease numbers do not rise": _event("job_completed"),
    "after it was completed came job_recovered": _event("job_completed", "job_recovered"),
    "an effect of an item that never completed": "DELETE FROM history WHERE kind = 'delivery_completed'",
    "in 0 attempts": "UPDATE history SET data = data || '{\"lease_number\": 0}' WHERE kind = 'delivery_completed'",
    "was told to have completed it": "UPDATE user_task SET ended_by = 'nobody' WHERE status = 'completed'",
    "completed by ann, and nobody was told so": TASK,
    "approval: expected": "UPDATE process_instance SET final_variables = final_variables - 'approval'",
    "was told to have it": "DELETE FROM history WHERE kind = 'task_claimed'",
    "while nobody else had it": _event("task_claimed", actor="nobody else", first=True),
    "while the case was suspended": _event("instance_started", "instance_suspended", first=True),
}


def test_an_engine_that_is_whole_is_not_reported(left: Left):
    assert violations(left.evidence) == []
    assert sum(row["process"] == "order" for row in left.evidence.rows.instances.values()) > 3
    assert len(left.evidence.effects) > 10


@pytest.mark.parametrize("sentence", ROWS)
def test_rows_that_are_not_as_they_should_be_are_reported(left: Left, sentence: str):
    with psycopg.connect(left.topology.url()) as conn:
        conn.execute(ROWS[sentence].encode())
        broken = replace(left.evidence, rows=read_rows(conn), orphans=orphans(conn))
        conn.rollback()
    found = [str(each) for each in violations(broken)]
    assert any(sentence in each for each in found), f"expected {sentence!r}, found {found}"


def _asked(evidence: Evidence, what: str, **changed: Any) -> Evidence:
    """The first successful request of this kind, changed."""
    first = next(ask for ask in evidence.asks if ask.what == what and ask.done)
    return replace(evidence, asks=[replace(ask, **changed) if ask is first else ask for ask in evidence.asks])


def test_what_the_driver_knows_is_reported(left: Left):
    evidence = left.evidence
    twice = [ask for ask in evidence.asks if ask.what == "acquire" and ask.body.get("items")][:1]
    early = next(ask for ask in evidence.asks if ask.what == "finish" and ask.done)
    broken = {
        "never answered": _asked(evidence, "start", status=None),
        "answered 500": _asked(evidence, "claim", status=500),
        "an effect": replace(evidence, effects=[*evidence.effects, ("1", evidence.effects[0][1])]),
        "belongs to no case": replace(evidence, effects=[*evidence.effects, ("1", "/notify/nobody")]),
        "whose effect nobody saw": replace(evidence, effects=evidence.effects[1:]),
        "was given out twice": replace(evidence, asks=[*evidence.asks, *twice]),
        "although a higher one": _asked(evidence, "finish", about={**early.about, "knows_better": True}),
        "past its expiry": replace(evidence, too_long={"job 1": 9.0}),
        "notifies": replace(evidence, notified=["NOTIFY work"]),
        "unexpected exceptions": replace(evidence, said={"worker-0": "Traceback (most recent call last):"}),
        "gave up": replace(evidence, trouble=["ann gave up"]),
    }
    for sentence, each in broken.items():
        found = [str(violation) for violation in violations(each)]
        assert any(sentence in told for told in found), f"expected {sentence!r}, found {found}"


def test_a_deadlock_in_the_servers_log_is_reported(left: Left):
    """A real one, so that the log says it as the server says it."""

    def take(conn: psycopg.Connection[Any], *numbers: int) -> None:
        for number in numbers:
            conn.execute("SELECT pg_advisory_xact_lock(%s)", (number,))

    with psycopg.connect(left.topology.url()) as one, psycopg.connect(left.topology.url()) as other:
        take(one, 1)
        take(other, 2)
        errors: list[Exception] = []

        def cross() -> None:
            try:
                take(other, 1)
            except psycopg.errors.DeadlockDetected as error:
                errors.append(error)
                other.rollback()

        thread = threading.Thread(target=cross)
        thread.start()
        try:
            take(one, 2)
        except psycopg.errors.DeadlockDetected as error:
            errors.append(error)
            one.rollback()
        thread.join()
    assert len(errors) == 1
    found = violations(replace(left.evidence, logs=left.topology.logs()))
    assert [each.rule for each in found] == ["deadlock"]
