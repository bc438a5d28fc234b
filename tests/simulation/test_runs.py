"""The fixture `process`: what an author may do and see, and what a step that cannot be done says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.simulation.house import NotDeployed
from engine.simulation.plugin import process
from engine.simulation.run import Model
from engine.simulation.works import BpmnError, NotPossible
from tests.bpmn.models import around, file_of

__all__ = ["process"]
Fixture = Callable[..., Model]


def test_a_case_runs_to_its_end_in_three_lines(process: Fixture):
    run = process("order.bpmn").start("o-1", amount=5000)
    run.task("Approve the order").complete(ok=True).job("charge").returns(receipt="R-7")
    assert run.completed
    assert run.variables == {"amount": 5000, "ok": True, "receipt": "R-7"}
    assert run.path == ["placed", "large", "approve", "charge", "shipped"]


def test_time_passes_only_when_it_is_told_to_and_what_is_due_happens_when_it_is_due(process: Fixture):
    run = process("order.bpmn", at="2026-03-02T08:00:00Z").start(amount=5000)
    run.advance("PT23H")
    assert run.tasks == ["approve"]
    run.advance("P2D")
    assert run.tasks == ["approve", "remind"]
    fired = next(event for event in run.events if event.kind == "timer_fired")
    assert fired.at.isoformat() == "2026-03-03T08:00:00+00:00"
    assert run.task("remind").assignee == "author"
    with pytest.raises(NotPossible, match="the clock does not go back"):
        run.advance("2026-03-01T00:00:00Z")


def test_a_job_may_throw_an_error_or_fail_and_be_tried_again(process: Fixture):
    model = process("order.bpmn")
    thrown = model.start(amount=5)
    thrown.job("card.charge").throws("DECLINED", "no money")
    assert thrown.completed and thrown.variables["why"] == "no money" and "refused" in thrown.path

    failing = model.start(amount=5)
    failing.job("charge").fails("the bank is closed")
    assert (failing.incidents, failing.jobs, failing.status) == ({"charge": "the bank is closed"}, [], "running")
    failing.retry("charge").job("charge").returns()
    assert failing.completed and failing.incidents == {}

    uncaught = model.start(amount=5)
    uncaught.job("charge").throws("NO_SUCH_CODE")
    assert "nothing catches it" in uncaught.incidents["charge"]


def test_a_handler_is_a_function_from_what_it_sees_to_its_result(process: Fixture):
    seen = []

    def charge(variables):
        seen.append(dict(variables))
        if variables["amount"] > 100:
            raise BpmnError("DECLINED", "too much")
        return {"receipt": variables["amount"] * 2}

    model = process("order.bpmn").handler("card.charge", charge)
    assert model.start(amount=21).variables == {"amount": 21, "receipt": 42}
    assert model.start(amount=500).variables["why"] == "too much"
    assert seen == [{"amount": 21}, {"amount": 500}]


def test_an_exception_of_a_handler_that_is_no_error_of_the_model_is_the_authors_to_see(process: Fixture):
    def broken(_):
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError, match="a bug"):
        process("order.bpmn").handler("card.charge", broken).start(amount=5)


def test_what_is_not_open_is_said_with_what_is(process: Fixture):
    run = process("order.bpmn").start(amount=5000)
    with pytest.raises(NotPossible, match=r"expected an open task 'aprove', found approve \(did you mean 'approve'\?\)"):
        run.task("aprove")
    with pytest.raises(NotPossible, match="expected an open job 'charge', found nothing"):
        run.job("charge")
    run.task("approve").complete()
    with pytest.raises(NotPossible, match="'approve' is completed already"):
        run.task("approve")
    run.cancel("a mistake")
    assert run.status == "cancelled" and run.waiting == []


def test_a_form_sees_the_inputs_of_its_task_over_the_variables(process: Fixture, tmp_path: Path):
    mapped = '<camunda:inputOutput><camunda:inputParameter name="total">${amount * 2}</camunda:inputParameter></camunda:inputOutput>'
    (tmp_path / "m.bpmn").write_bytes(around(f'<userTask id="x"><extensionElements>{mapped}</extensionElements></userTask>'))
    run = process(tmp_path / "m.bpmn").start(amount=4, total=0)
    assert run.task("x").variables == {"amount": 4, "total": 8}


def test_called_processes_are_part_of_the_run(process: Fixture):
    run = process("../models/an_order_calls_a_check.bpmn").start("o-1", amount=70, positions=["lamp", "desk"])
    assert (run.variables["total"], run.tasks) == (140, ["look"])
    assert run.task("Look for lamp").variables == {"article": "lamp", "large": True}
    run.task("look").complete(seen=3).task("look").complete(seen=0)
    assert run.completed
    assert run.path[-3:] == ["gone", "missing", "out"]


def test_what_is_called_and_not_deployed_is_an_incident(process: Fixture, tmp_path: Path):
    calling = tmp_path / "calling.bpmn"
    calling.write_bytes(around('<callActivity id="x" calledElement="other"/>'))
    run = process(calling).start()
    assert run.incidents == {"x": "x: expected the process other, found none that is deployed"}


def test_a_model_that_may_not_be_deployed_says_why(process: Fixture):
    with pytest.raises(NotDeployed, match=r"s48_faults.bpmn:8: f9: sequenceFlow 'f9' has no targetRef"):
        process("../models/s48_faults.bpmn")


def test_a_file_that_is_nowhere_says_where_it_was_looked_for(process: Fixture):
    with pytest.raises(FileNotFoundError, match=r"expected a model nowhere.bpmn in .*simulation"):
        process("nowhere.bpmn")


def test_values_that_no_process_could_store_are_refused(process: Fixture):
    with pytest.raises(NotPossible, match="amount: expected a JSON value, found object"):
        process("order.bpmn").start(amount=object())


def test_a_clock_that_would_pass_too_many_moments_says_so(process: Fixture):
    model = process("../models/every_quarter_of_an_hour.bpmn", at="2026-06-30T22:00:00Z")
    model.advance("PT1H")
    assert len(model.runs) == 5
    with pytest.raises(NotPossible, match="expected at most 2,000 moments at which something is due"):
        model.advance("P60D")


def test_a_start_event_that_cannot_be_judged_is_a_problem_of_the_model(process: Fixture, tmp_path: Path):
    model = tmp_path / "unknown.bpmn"
    body = '<startEvent id="s"><signalEventDefinition signalRef="g"/></startEvent><endEvent id="e"/>'
    body += '<sequenceFlow id="f" sourceRef="s" targetRef="e"/>'
    model.write_bytes(file_of(body, root='<signal id="g" name="${nobody}"/>'))
    with pytest.raises(NotDeployed, match="expected a variable 'nobody', found none"):
        process(model)
