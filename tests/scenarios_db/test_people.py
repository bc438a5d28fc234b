"""People at one task: many presses at once, a rival, a late one; two tasks of one case at the same moment."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from engine.commands import transaction
from engine.commands.complete_task import complete_task
from engine.commands.outcome import Claimed, ItemDone, Refusal, Rejected, TaskCompleted
from engine.commands.tasks import claim
from engine.db.session import connect
from tests import rows
from tests.cast import ADA, BO
from tests.races.contest import contest
from tests.scenarios_db.stage import Run, Stage

ROOT_ROW = "SELECT 1 FROM process_instance WHERE id = %s FOR UPDATE"


@pytest.fixture
def no_second_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadlock is not run again: it fails the test."""
    monkeypatch.setattr(transaction, "RUNS", 1)


def at_once(url: str, acts: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """What each act returned; all begin at the same moment, on connections of their own."""
    barrier = threading.Barrier(len(acts))
    outcomes: list[Any] = [None] * len(acts)

    def run(number: int) -> None:
        with connect(url) as conn:
            barrier.wait(30)
            outcomes[number] = acts[number](conn)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def test_S20_twenty_completes_at_once_are_one_success_and_nineteen_refusals_of_one_reason(
    stage: Stage, database_url: str, no_second_run: None
) -> None:
    run = stage.begin("a_task_then_a_message_out_and_a_task", mira="ada")
    task = run.task("first")

    def press(conn: Any, number: int) -> Any:
        values = {"number": number, f"only_{number}": number}
        return complete_task(conn, task, actor=ADA, variables=values, request_id=f"press-{number}")

    outcomes = at_once(database_url, [lambda c, n=n: press(c, n) for n in range(20)])
    (winner,) = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, TaskCompleted)]
    lost = [outcome for outcome in outcomes if isinstance(outcome, Rejected)]
    assert Counter((each.refusal, each.by, each.at) for each in lost) == {(Refusal.ALREADY_COMPLETED, "ada", outcomes[winner].at): 19}
    assert run.variables == {"mira": "ada", "number": winner, f"only_{winner}": winner}, "nothing of the losers is stored"
    assert run.open == ["second"]
    assert rows.one(stage.conn, "SELECT count(*) FROM user_task WHERE element_id = 'second'") == 1
    assert rows.one(stage.conn, "SELECT count(*) FROM delivery") == 1
    assert run.told("task_completed", "delivery_created", "task_created") == [
        *("task_created first", "task_completed first", "delivery_created told", "task_created second"),
    ]
    assert rows.one(stage.conn, "SELECT count(*) FROM request") == 20
    assert [press(stage.conn, number) for number in range(20)] == outcomes, "each press hears the same again"


def finished(stage: Stage, run: Run) -> None:
    """The join fired once, and its job waits to be taken without anybody's doing."""
    assert run.places == [("ship", "waiting")]
    assert run.told("join_passed", "job_created") == ["join_passed join", "job_created ship"]
    (leased,) = stage.take()
    assert isinstance(stage.end(leased), ItemDone)
    assert (run.status, run.leftovers) == ("completed", 0)


def test_S22_two_tasks_of_one_case_completed_at_the_same_moment_a_hundred_times(
    stage: Stage, database_url: str, no_second_run: None
) -> None:
    stage.handlers["ship"] = lambda variables: None
    stage.deploy("two_tasks_and_a_join")
    runs = [stage.start("two_tasks_and_a_join") for _ in range(100)]
    tasks = [(run.task("a"), run.task("b")) for run in runs]
    barrier = threading.Barrier(2)

    def complete_all(conn: Any, side: int) -> list[Any]:
        outcomes = []
        for pair in tasks:
            barrier.wait(30)
            outcomes.append(complete_task(conn, pair[side], actor=(ADA, BO)[side], variables={"ab"[side]: side}, request_id=None))
        return outcomes

    sides = at_once(database_url, [lambda c: complete_all(c, 0), lambda c: complete_all(c, 1)])
    assert [outcome for outcomes in sides for outcome in outcomes if not isinstance(outcome, TaskCompleted)] == []
    joined = stage.conn.execute("SELECT instance_id, count(*) FROM history WHERE kind = 'join_passed' GROUP BY 1").fetchall()
    assert len(joined) == 100
    assert {times for _, times in joined} == {1}
    assert len(stage.work()) == 100, "each follow-up job is queued"
    assert {run.status for run in runs} == {"completed"}


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_S22_two_tasks_of_one_case_while_somebody_else_holds_its_row(
    stage: Stage, database_url: str, no_second_run: None, order: str
) -> None:
    stage.handlers["ship"] = lambda variables: None
    run = stage.begin("two_tasks_and_a_join")
    acts = {
        "a": lambda c, task=run.task("a"): complete_task(c, task, actor=ADA, variables={}, request_id="1"),
        "b": lambda c, task=run.task("b"): complete_task(c, task, actor=BO, variables={}, request_id="1"),
    }
    outcomes = contest(database_url, ROOT_ROW, (run.id,), *(acts[name] for name in order))
    assert all(isinstance(outcome, TaskCompleted) for outcome in outcomes), "one waits, neither is told that the case is busy"
    finished(stage, run)


def test_S23_a_claim_again_by_a_rival_and_late(stage: Stage, database_url: str) -> None:
    run = stage.begin("a_group_task")
    task = run.task("check")
    press = lambda c: claim(c, task, actor=ADA, request_id="lea-1")  # noqa: E731
    first, second, rival = at_once(database_url, [press, press, lambda c: claim(c, task, actor=BO, request_id="tomas-1")])
    if isinstance(first, Rejected):  # the rival was faster: the same, with the parts exchanged
        assert isinstance(rival, Claimed)
        assert first == second
        first, rival, ada, bo = rival, first, BO, ADA
    else:
        assert first == second, "the same press twice is one success with one answer"
        ada, bo = ADA, BO
    assert isinstance(first, Claimed)
    assert (rival.refusal, rival.by, rival.at) == (Refusal.ALREADY_CLAIMED, ada.username, first.at)

    again = claim(stage.conn, task, actor=ada, request_id="another press")
    assert isinstance(again, Claimed)
    assert (again.at, again.repeated) == (first.at, True), "mine already: a harmless success"
    run.complete("check", ada)
    late = claim(stage.conn, task, actor=bo, request_id="tomas-2")
    assert isinstance(late, Rejected)
    assert (late.refusal, late.by) == (Refusal.ALREADY_COMPLETED, ada.username)
    assert run.told("task_claimed", "task_unclaimed", "task_assigned") == ["task_claimed check"]
