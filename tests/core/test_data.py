"""Data outputs of events and results, and what a subprocess has for itself (10.4)."""

from __future__ import annotations

from dataclasses import replace

from engine.bpmn.definition import DataOutput, ProcessDefinition
from engine.expressions import parse
from tests.core.models import boundary, by_event, catch, model, on_event, script, service, start, sub, user
from tests.core.world import World


def gives(definition: ProcessDefinition, element: str, source: str, target: str) -> ProcessDefinition:
    """The definition with a data output association at the element."""
    output = DataOutput(target, (source,), parse(f"${{`{source}`}}"))
    node = replace(definition.nodes[element], data_outputs=(output,))
    return replace(definition, nodes={**definition.nodes, element: node})


def test_what_a_message_brings_goes_to_the_data_of_its_output() -> None:
    waits = gives(model("start -> wait -> end", wait=catch(on="M"), end=user()), "wait", "answer", "verdict")
    run = World(waits).start().receive("wait", answer="yes", more=1)
    assert run.variables == {"verdict": "yes", "more": 1}


def test_so_does_what_starts_an_instance() -> None:
    run = World(gives(model("start -> a", a=user()), "start", "sum", "order sum")).start(sum=5, rest=1)
    assert run.variables == {"order sum": 5, "rest": 1}


def test_so_does_what_an_error_carries() -> None:
    caught = model("start -> work -> end", "oops -> after", work=service(), oops=boundary("work", error="E"), after=user())
    run = World(gives(caught, "oops", "limit", "allowed")).start().throw("work", "E", limit=3)
    assert run.tasks == ["after"] and run.variables == {"allowed": 3}


def test_so_does_what_begins_an_event_subprocess() -> None:
    listens = model(
        "start -> a -> end", "on -> b -> he", a=user(), b=user(), on=on_event(on="M"), handler=by_event(),
        inside={"handler": "on b he"},
    )  # fmt: skip
    run = World(gives(listens, "on", "answer", "verdict")).start().receive("on", answer="yes")
    assert run.variables == {"verdict": "yes"}


def test_what_a_subprocess_has_for_itself_stays_in_it() -> None:
    inner = model("start -> s -> end", "begin -> write -> b -> over", s=sub(), begin=start(), write=script("${1 + 1}", "note"), b=user(),
                  inside={"s": "begin write b over"})  # fmt: skip
    own = replace(inner, nodes={**inner.nodes, "s": replace(inner.nodes["s"], locals=("note",))})
    assert World(own).start().variables == {}
    assert World(inner).start().variables == {"note": 2}, "without a data object it goes to the process"
