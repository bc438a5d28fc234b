"""Where variables live, embedded subprocesses, and how an instance ends (10.4, 13.3.4)."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from engine.bpmn.definition import ScriptConfig
from engine.core.values import Variable
from engine.expressions import parse
from tests.core.models import ad_hoc, boundary, end, model, par, script, service, start, sub, user
from tests.core.world import World

INNER = model(
    "start -> sub -> after -> end",
    "s -> a -> b -> e",
    s=start(),
    e=end(),
    sub=sub({"local": "${outer + 1}", "twice": "${local * 2}"}),
    inside={"sub": "s a b e"},
)


def test_inputs_of_a_subprocess_are_its_own_and_go_with_it() -> None:
    run = World(INNER).start(outer=1)
    (inner,) = [scope for scope in run.scopes.values() if scope.element_id == "sub"]
    assert inner.variables == {"local": Variable("integer", 2), "twice": Variable("integer", 4)}
    run.complete("a", local=5, outer=6, fresh=7)
    assert run.scopes[inner.id].variables["local"].value == 5, "the nearest scope that has the name"
    assert run.variables == {"outer": 6, "fresh": 7}, "new names go to the process scope"
    run.complete("b")
    assert run.variables == {"outer": 6, "fresh": 7}
    assert run.open == ["after"]
    assert run.complete("after").final == {"outer": 6, "fresh": 7}
    assert run.asked_whole == 0


def test_a_new_scope_tells_its_path_and_its_owner() -> None:
    run = World(INNER).start(outer=1)
    process, inner = run.last.new_scopes
    assert (process.parent_id, process.token_id, process.path) == (None, None, (process.id,))
    assert (inner.parent_id, inner.path) == (process.id, (process.id, inner.id))
    (owner,) = [token for token in run.tokens.values() if token.element_id == "sub"]
    assert inner.token_id == owner.id
    assert owner.scope_id == process.id


def test_a_subprocess_without_boundary_events_gives_its_scope_up_and_keeps_its_token() -> None:
    run = World(INNER).start(outer=1).complete("a")
    (owner,) = [token for token in run.tokens.values() if token.element_id == "sub"]
    (inner,) = [scope.id for scope in run.scopes.values() if scope.element_id == "sub"]
    run.complete("b", local=9)
    assert run.last.gone_scopes == [inner]
    assert [moved.id for moved in run.last.moved_tokens] == [owner.id]
    assert run.last.gone_tokens == [], "the inner token goes with its scope"
    assert run.last.variables == {}, "nothing is written to a scope that goes"


def test_a_subprocess_with_a_timer_replaces_its_token_which_takes_the_scope_along() -> None:
    late = model(
        "start -> sub -> after -> end", "s -> a -> e", s=start(), e=end(), late=boundary("sub", after="P1D"), inside={"sub": "s a e"}
    )
    run = World(late).start()
    (owner,) = [token for token in run.tokens.values() if token.element_id == "sub"]
    run.complete("a")
    assert run.last.gone_tokens == [owner.id]
    assert run.last.gone_scopes == []
    assert run.open == ["after"]


def test_a_subprocess_waits_for_its_last_token() -> None:
    parallel = model(
        "start -> sub -> end",
        "s -> par -> a -> e1",
        "par -> b -> e2",
        s=start(),
        par=par(),
        e1=end(),
        e2=end(),
        inside={"sub": "s par a b e1 e2"},
    )
    run = World(parallel).start().complete("b")
    assert run.tasks == ["a"]
    assert run.ended is None
    assert run.complete("a").ended == "completed"
    assert run.asked_whole == 0


def test_a_subprocess_that_never_waits_is_passed_in_one_step() -> None:
    run = World(model("start -> sub -> a -> end", "s -> e", s=start(), e=end(), inside={"sub": "s e"})).start()
    assert run.open == ["a"]
    assert len(run.last.new_scopes) == 1
    assert run.new("element_entered", "element_left")[2:6] == [
        "element_entered sub",
        "element_entered s",
        "element_left s",
        "element_entered e",
    ]


def test_an_instance_that_starts_and_ends_in_one_step_names_no_row() -> None:
    run = World(model("start -> end")).start(x=1)
    assert run.ended == "completed"
    effects = run.last
    assert not (effects.new_scopes or effects.new_tokens or effects.gone_scopes or effects.gone_tokens or effects.variables)
    assert effects.final_variables == {"x": Variable("integer", 1)}


def test_an_instance_that_ends_names_its_process_scope_alone() -> None:
    run = World(model("start -> a -> end")).start(x=1)
    (process,) = run.scopes
    run.complete("a", x=2)
    assert run.last.gone_scopes == [process]
    assert not (run.last.gone_tokens or run.last.moved_tokens or run.last.variables)
    assert run.final == {"x": 2}


def test_values_keep_their_kind_on_their_way() -> None:
    values = {
        "t": "x",
        "n": 3,
        "d": 1.5,
        "yes": True,
        "none": None,
        "day": date(2026, 1, 31),
        "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "list": [1, {"a": 0.1}],
    }
    run = World(model("start -> a -> end")).start(**values)
    run.complete("a")
    assert run.final == {**values, "d": Decimal("1.5"), "list": [1, {"a": Decimal("0.1")}]}
    assert run.last.final_variables is not None
    kinds = {name: variable.type for name, variable in run.last.final_variables.items()}
    assert kinds == {
        "t": "string",
        "n": "integer",
        "d": "double",
        "yes": "boolean",
        "none": "null",
        "day": "date",
        "at": "datetime",
        "list": "json",
    }


def test_unchanged_values_are_neither_written_nor_told() -> None:
    run = World(model("start -> a -> b -> end")).start(x=1, y=2).complete("a", x=1, y=3)
    assert {name for _, name in run.last.variables} == {"y"}
    (told,) = [event for event in run.last.history if event.kind == "variables_set"]
    assert told.data == {"variables": {"y": {"type": "integer", "value": 3}}}
    run.complete("b", y=3)
    assert "variables_set" not in {event.kind for event in run.last.history}


def test_one_and_true_are_different_values() -> None:
    run = World(model("start -> a -> b -> end")).start(x=1).complete("a", x=True)
    assert run.variables == {"x": True}
    assert run.last.variables


def test_the_initiator_becomes_a_variable_where_the_start_event_names_one() -> None:
    run = World(model("start -> a -> end", start=start(initiator="who")), started_by="ada").start()
    assert run.variables == {"who": "ada"}


def test_outputs_choose_from_the_result_and_see_the_variables() -> None:
    outputs = {"total": "${amount + tax}", "state": "done"}
    run = World(model("start -> s -> a -> end", s=service(outputs=outputs))).start(amount=10)
    run.complete("s", tax=2, amount=20, noise="x")
    assert run.variables == {"amount": 10, "total": 22, "state": "done"}


def test_outputs_that_have_no_value_are_an_incident_at_the_task() -> None:
    run = World(model("start -> s -> a -> end", s=service(outputs={"total": "${sum}"}))).start()
    run.complete("s", other=1)
    (incident,) = run.incidents
    assert (incident.element_id, incident.kind) == ("s", "expression")
    assert run.retry("s").open == ["s"], "the work is done again: there was no result to keep"


def test_starting_at_a_message_or_timer_start_event_says_so() -> None:
    run = World(model("start -> a -> end", "start_m -> a"), business_key="k-1").start("start_m", "message", x=1)
    assert run.tasks == ["a"]
    assert run.events[0].data == {"what": "message", "business_key": "k-1"}


@pytest.mark.parametrize("made", ["${n * 9e307}", "${-n * 9e307}", "= [n * 9e307]", "= {a: [n * 9e307]}"])
def test_a_number_larger_than_a_double_carries_is_kept_as_no_infinity(made: str) -> None:
    """In the database it would be null, and the case could never be read again."""
    expression = parse(made[1:], language="feel") if made.startswith("=") else parse(made)
    node = script("${n}", "m")
    run = World(model("start -> a -> end", a=replace(node, config=ScriptConfig(expression, "m")))).start(n=10)
    (incident,) = run.incidents
    assert incident.kind == "expression" and "expected a number that a double can carry, found " in incident.message


def test_a_value_nested_deeper_than_can_be_written_is_an_incident() -> None:
    run = World(model("start -> a -> end", a=script("${JSON(text)}", "m")))
    run.start(text="[" * 200 + "]" * 200)
    (incident,) = run.incidents
    assert (incident.kind, incident.element_id) == ("expression", "a") and "at most 150 levels of objects and lists" in incident.message
    deep = World(model("start -> a -> b -> end", a=script("${JSON(text)}", "m"), b=user())).start(text="[" * 150 + "]" * 150)
    assert deep.open == ["b"]


def test_a_number_of_more_than_64_bits_cannot_be_kept_wherever_an_expression_makes_it() -> None:
    big = "${n * 4}"
    box = ad_hoc()
    given = replace(box, config=replace(box.config, inputs=(("m", parse(big)),)))
    kept = service(outputs={"m": big})
    chains = "start -> a -> end", "begin -> w -> over"
    for node in (script(big, "m"), sub({"m": big}), given, service(inputs={"m": big}), kept):
        inside = {"a": "begin w over"} if node.kind == "subprocess" else {"a": "w"} if node.kind == "ad_hoc_subprocess" else {}
        elements = {"begin": start(), "over": end()} if node.kind == "subprocess" else {}
        used = chains if elements else chains[:1]
        run = World(model(*used, a=node, w=user(), inside=inside, **elements)).start(n=2**62)
        if node is kept:
            run.complete("a")
        (incident,) = run.incidents
        assert (incident.element_id, incident.kind) == ("a", "expression") and "within 64 bits, found one of 65 bits" in incident.message
