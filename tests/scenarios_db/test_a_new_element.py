"""An element that exists under tests/ alone, deployed as a file and run through the database.

Its parser and its behaviour are those of tests/core/test_a_new_element_is_a_file.py: two external tasks, the first answer
wins and the other task is withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.bpmn import support
from engine.commands.external_tasks import LeasedTask, acquire_external_tasks, complete_external_task
from engine.commands.outcome import ItemDone, Refusal, Rejected
from engine.core import registry
from tests.cast import OP
from tests.core.test_a_new_element_is_a_file import MODEL, Race, parse_race
from tests.scenarios_db.stage import Stage


@pytest.fixture
def known() -> Iterator[None]:
    parser = support.Supported("race", "activity", parse_race)
    with support.registered("{urn:test:race}race", parser), registry.registered("race", Race()):
        yield


def leased(stage: Stage, topic: str) -> LeasedTask:
    acquired = acquire_external_tasks(stage.conn, actor=OP, worker_id=topic, topics=[topic])
    assert not isinstance(acquired, Rejected)
    (task,) = acquired
    return task


def test_a_new_element_is_deployed_and_run_through_the_database(stage: Stage, known: None) -> None:
    stage.deploy_files([("asking.bpmn", MODEL)])
    run = stage.start("asking")
    assert run.open == ["ask", "ask"]
    north, south = leased(stage, "north"), leased(stage, "south")
    first = complete_external_task(stage.conn, south.id, actor=OP, lease_number=south.lease_number, variables={"answer": 42})
    assert isinstance(first, ItemDone)
    late = complete_external_task(stage.conn, north.id, actor=OP, lease_number=north.lease_number, variables={"answer": 41})
    assert isinstance(late, Rejected)
    assert late.refusal is Refusal.LEASE_LOST
    assert (run.open, run.variables) == (["read"], {"answer": 42})
    run.claim("read", OP)
    run.complete("read")
    assert (run.status, run.leftovers) == ("completed", 0)


def test_without_its_registration_the_same_file_is_refused(stage: Stage) -> None:
    from engine.commands.deploy import deploy

    refused = deploy(stage.conn, [("asking.bpmn", MODEL)], actor=OP)
    assert isinstance(refused, Rejected)
    assert refused.refusal is Refusal.INVALID
    assert "race" in str(refused.problems)
