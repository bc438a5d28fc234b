"""A token that cannot go on rests at an incident; a retry goes on from there; a cancel ends everything."""

from dataclasses import replace
from uuid import UUID

import pytest

from engine.core.advance import advance
from engine.core.effects import InvariantBroken
from engine.core.snapshot import Cancelled, Completed, NeedsWholeInstance, Retried
from engine.core.values import typed
from engine.expressions import parse
from tests.core.models import boundary, end, model, par, service, start, user
from tests.core.world import NOW, World

DECISION = model("start -> a -> xor -> b -> end", "xor -> c -> end", conditions={"xor>b": "${ok}"}, defaults=("xor>c",))


def set_variable(run: World, name: str, value: object) -> None:
    """As an operator's edit would."""
    (scope,) = run.scopes.values()
    run.scopes[scope.id] = replace(scope, variables={**scope.variables, name: typed(value)})


def test_a_retry_after_the_variable_was_set_goes_on_with_the_same_token() -> None:
    run = World(DECISION).start().complete("a")
    (token,) = run.tokens
    set_variable(run, "ok", True)
    run.retry("xor")
    assert run.open == ["b"]
    assert list(run.tokens) == [token]
    assert run.last.resolved_incidents_of == [token]
    assert run.new() == [
        "incident_resolved xor",
        "element_left xor",
        "flow_taken xor>b",
        "element_entered b",
        "task_created b",
    ]


def test_a_retry_that_fails_again_has_exactly_one_incident_and_the_same_token() -> None:
    run = World(DECISION).start().complete("a")
    (token,) = run.tokens
    run.retry("xor").retry("xor")
    assert len(run.incidents) == 1
    assert list(run.tokens) == [token]
    assert run.last.resolved_incidents_of == [], "the new incident takes the place of the old one"
    assert run.happened.count("incident_opened xor") == 3
    assert run.happened.count("element_entered xor") == 1


def test_a_retried_token_that_fails_further_on_has_its_incident_there() -> None:
    conditions = {"xor>xor2": "${ok}", "xor2>b": "${later}"}
    run = World(model("start -> xor -> xor2 -> b -> end", "xor -> c -> end", conditions=conditions, defaults=("xor>c",))).start()
    set_variable(run, "ok", True)
    run.retry("xor")
    assert run.open == ["xor2"]


def test_a_task_that_could_not_open_opens_on_retry_with_its_boundary_events() -> None:
    late = boundary("a", after="PT1H")
    run = World(model("start -> a -> end", a=user("A", assignee=parse("${who}")), late=late)).start()
    assert run.open == ["a"]
    set_variable(run, "who", "ada")
    run.retry("a")
    assert run.open == ["a", "late"]
    assert run.leaf("a").token_id in run.tokens
    assert run.complete("a").ended == "completed"


def test_a_task_that_was_done_and_could_not_be_left_is_not_done_again() -> None:
    conditions = {"a>b": "${ok}"}
    run = World(model("start -> a -> b -> end", "a -> c -> end", late=boundary("a", after="PT1H"), conditions=conditions)).start()
    run.complete("a", result=1)
    (incident,) = run.incidents
    assert (incident.element_id, incident.kind) == ("a", "expression")
    assert run.open == ["a"], "the boundary timer is gone: the work is done"
    assert run.variables == {"result": 1}
    set_variable(run, "ok", False)
    run.retry("a")
    assert run.tasks == ["c"]
    assert "element_left a" in run.new()


def test_an_incident_in_one_branch_leaves_the_other_alone() -> None:
    run = World(
        model("start -> par -> xor -> b -> end", "par -> c -> end", "xor -> d -> end", conditions={"xor>b": "${ok}", "xor>d": "${ok}"})
    ).start()
    assert run.tasks == ["c"]
    run.complete("c")
    assert run.ended is None
    set_variable(run, "ok", True)
    assert run.retry("xor").tasks == ["b"]


def test_an_endless_loop_may_be_retried_once_it_can_end() -> None:
    run = World(
        model("start -> xor -> xor_back -> xor", "xor_back -> end", conditions={"xor_back>end": "${stop}"}, defaults=("xor_back>xor",))
    )
    run.start(stop=False)
    set_variable(run, "stop", True)
    (incident,) = run.incidents
    assert run.retry(incident.element_id).ended == "completed"


def test_cancelling_ends_everything_and_names_every_open_task() -> None:
    nested = model(
        "start -> par -> sub -> end",
        "par -> b -> end",
        "par -> s -> end",
        "s0 -> a -> e",
        par=par(),
        s=service(),
        s0=start(),
        e=end(),
        late=boundary("a", after="PT1H"),
        inside={"sub": "s0 a e late"},
    )
    run = World(nested).start(x=1)
    (process,) = [scope.id for scope in run.scopes.values() if scope.parent_id is None]
    run.cancel("a mistake")
    assert run.ended == "cancelled"
    assert run.final == {"x": 1}
    assert run.last.gone_scopes == [process]
    assert sorted(run.new()) == ["instance_cancelled", "task_cancelled a", "task_cancelled b"]
    assert run.last.history[-1].data == {"reason": "a mistake"}


def test_a_cancelled_incident_goes_with_its_token() -> None:
    run = World(DECISION).start().complete("a").cancel()
    assert run.ended == "cancelled"
    assert run.open == []


def test_cancelling_asks_for_the_whole_instance() -> None:
    run = World(model("start -> a -> end")).start()
    with pytest.raises(NeedsWholeInstance):
        advance(run.definition, run.narrow(Cancelled()), Cancelled(), now=NOW, new_id=run.new_id)


def test_a_trigger_that_cannot_be_is_a_bug_and_loud() -> None:
    run = World(DECISION).start()
    (token,) = run.tokens
    with pytest.raises(InvariantBroken, match="expected token"):
        run.happen(Completed(UUID(int=99), {}, "task_completed"))
    with pytest.raises(InvariantBroken, match="expected failed, found waiting"):
        run.happen(Retried(token))
    run.complete("a")
    with pytest.raises(InvariantBroken, match="expected waiting, found failed"):
        run.happen(Completed(token, {}, "task_completed"))
