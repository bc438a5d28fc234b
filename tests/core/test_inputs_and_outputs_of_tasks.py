"""Input and output parameters of user tasks and subprocesses: what is theirs alone, and what they leave behind (decision 0083)."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.bpmn.definition import AdHocConfig, Node, SubprocessConfig
from engine.core.effects import NewTask
from engine.core.values import native
from engine.expressions import Expression, parse
from tests.bpmn.models import around, definition
from tests.core.models import boundary, end, model, start, user
from tests.core.world import World


def mapped(given: Mapping[str, str]) -> tuple[tuple[str, Expression], ...]:
    return tuple((name, parse(text)) for name, text in given.items())


def asked(**config: Any) -> World:
    task = user(inputs=mapped({"customer": "${order.customer}", "greeting": "${'Dear ' + customer}"}), **config)
    return World(model("start -> ask -> after -> end", start=start(), ask=task, after=user())).start(order={"customer": "Bo"}, note="old")


def names_of(run: World, element: str) -> dict[str, Any]:
    (token,) = [token for token in run.tokens.values() if token.element_id == element]
    return dict((token.memory or {}).get("inputs", {}))


def test_inputs_of_a_user_task_are_its_own_each_sees_those_before_and_they_go_with_it() -> None:
    run = asked(assignee=parse("${customer}"))
    task = run.leaf("ask", NewTask)
    assert isinstance(task, NewTask)
    assert task.assignee == "Bo", "who it is for is asked after them"
    assert names_of(run, "ask") == {"customer": {"type": "string", "value": "Bo"}, "greeting": {"type": "string", "value": "Dear Bo"}}
    assert set(run.variables) == {"order", "note"}
    run.complete("ask", note="new", greeting="Hi")
    assert run.variables == {"order": {"customer": "Bo"}, "note": "new"}, "what was sent under the name of an input went with the task"
    assert names_of(run, "after") == {}


def test_outputs_of_a_user_task_see_its_inputs_and_what_was_sent_which_is_kept_besides() -> None:
    run = asked(outputs=mapped({"letter": "${greeting + ', ' + note}"})).complete("ask", note="thank you")
    assert run.variables == {"order": {"customer": "Bo"}, "note": "thank you", "letter": "Dear Bo, thank you"}


def test_where_outputs_say_all_that_is_kept_what_was_sent_is_not() -> None:
    run = asked(outputs=mapped({"letter": "${note}"}), keeps=False).complete("ask", note="thank you")
    assert run.variables == {"order": {"customer": "Bo"}, "note": "old", "letter": "thank you"}


def test_an_output_that_fails_is_an_incident_at_the_task_and_a_retry_asks_again() -> None:
    run = asked(outputs=mapped({"letter": "${missing}"})).complete("ask", note="new")
    (incident,) = run.last.incidents
    assert incident.element_id == "ask" and "missing" in incident.message
    assert run.variables["note"] == "old", "nothing of it was kept"
    assert names_of(run.retry("ask"), "ask")["customer"]["value"] == "Bo"


def test_inputs_stay_while_a_boundary_event_that_does_not_interrupt_happens() -> None:
    ask = user(inputs=mapped({"customer": "${order.customer}"}), outputs=mapped({"who": "${customer}"}))
    late = boundary("ask", after="P1D", interrupting=False)
    drawing = model("start -> ask -> end", "late -> remind -> end2", start=start(), ask=ask, late=late, remind=user(), end2=end())
    run = World(drawing).start(order={"customer": "Bo"}).fire("late").complete("ask")
    assert run.variables["who"] == "Bo"


@pytest.mark.parametrize("ad_hoc", [False, True])
def test_outputs_of_a_subprocess_see_its_own_variables_and_are_set_around_it(ad_hoc: bool) -> None:
    given, taken = mapped({"local": "${outer + 1}"}), mapped({"sum": "${local + outer}"})
    config = AdHocConfig(inputs=given, outputs=taken) if ad_hoc else SubprocessConfig(given, taken)
    inner = "a" if ad_hoc else "s -> a -> e"
    parts = {"a": user()} if ad_hoc else {"s": start(), "e": end()}
    sub = Node("", "ad_hoc_subprocess" if ad_hoc else "subprocess", config=config)
    drawing = model("start -> sub -> after -> end", inner, start=start(), sub=sub, inside={"sub": "a" if ad_hoc else "s a e"}, **parts)
    run = World(drawing).start(outer=1).complete("a", local=5)
    assert run.variables == {"outer": 1, "sum": 6}
    assert run.open == ["after"]


def test_an_output_of_a_subprocess_that_fails_is_an_incident_and_a_retry_begins_it_again() -> None:
    sub = Node("", "subprocess", config=SubprocessConfig((), mapped({"sum": "${missing + 1}"})))
    drawing = model("start -> sub -> end", "s -> a -> e", start=start(), sub=sub, s=start(), e=end(), inside={"sub": "s a e"})
    run = World(drawing).start().complete("a")
    (incident,) = run.last.incidents
    assert incident.element_id == "sub"
    assert run.retry("sub").open == ["a"]


IO = (
    "<camunda:inputOutput><camunda:inputParameter name='who'>${order.customer}</camunda:inputParameter>"
    "<camunda:outputParameter name='answer'>${note}</camunda:outputParameter></camunda:inputOutput>"
)
ZEEBE_IO = (
    "<zeebe:ioMapping><zeebe:input source='= order.customer' target='who'/>"
    "<zeebe:output source='= note' target='answer'/></zeebe:ioMapping>"
)


@pytest.mark.parametrize(("extension", "kept"), [(IO, "new"), (ZEEBE_IO, "old")])
def test_camunda_keeps_what_was_sent_beside_the_outputs_and_zeebe_the_outputs_alone(extension: str, kept: str) -> None:
    data = around(f'<userTask id="x"><extensionElements>{extension}</extensionElements></userTask>')
    read = definition(data)
    assert read.warnings == ()
    run = World(read).start("s", order={"customer": "Bo"}, note="old")
    assert names_of(run, "x")["who"]["value"] == "Bo"
    run.complete("x", note="new")
    assert {name: native(each) for name, each in run.final_variables.items()} == {
        "order": {"customer": "Bo"},
        "note": kept,
        "answer": "new",
    }


@pytest.mark.parametrize("sequential", [False, True])
def test_each_instance_of_a_looped_task_has_inputs_of_its_own(sequential: bool) -> None:
    mode = "true" if sequential else "false"
    data = around(
        f'<userTask id="x"><extensionElements>{IO.replace("${order.customer}", "${line}")}</extensionElements>'
        f'<multiInstanceLoopCharacteristics isSequential="{mode}" camunda:collection="lines" camunda:elementVariable="line"/></userTask>'
    )
    run = World(definition(data)).start("s", lines=["a", "b"], note="old")
    seen = []
    for _ in range(2):
        leaf = run.leaf("x", NewTask)
        seen.append((run.tokens[leaf.token_id].memory or {})["inputs"]["who"]["value"])
        run.complete("x", note=seen[-1], who="not kept")
    assert sorted(seen) == ["a", "b"]
    assert run.ended == "completed"
    assert run.final["answer"] == seen[-1] and "who" not in run.final
