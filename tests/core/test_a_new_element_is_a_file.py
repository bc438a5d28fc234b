"""An element that exists in this file alone: read by a parser registered here, run by a behaviour registered here.

`race`: asks two outside workers at once; the first answer wins, the other task is withdrawn.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from engine.bpmn import support
from engine.bpmn.context import Context
from engine.bpmn.definition import Node, ProcessDefinition
from engine.bpmn.names import Element
from engine.bpmn.reader import read_files
from engine.core import registry
from engine.core.activity import Activity
from engine.core.effects import InvariantBroken, NewExternalTask
from engine.core.run import Run
from engine.core.state import Token
from tests.core.world import World

MODEL = b"""<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:x="urn:test:race" targetNamespace="urn:test">
  <process id="asking" isExecutable="true">
    <startEvent id="start"/>
    <sequenceFlow id="f1" sourceRef="start" targetRef="ask"/>
    <x:race id="ask" left="north" right="south"/>
    <sequenceFlow id="f2" sourceRef="ask" targetRef="read"/>
    <userTask id="read"/>
    <sequenceFlow id="f3" sourceRef="read" targetRef="end"/>
    <endEvent id="end"/>
  </process>
</definitions>
"""


@dataclass(frozen=True, slots=True)
class RaceConfig:
    topics: tuple[str, str]


def parse_race(element: Element, context: Context) -> RaceConfig:
    return RaceConfig((element.get("left") or "", element.get("right") or ""))


class Race(Activity):
    def begin(self, run: Run, token: Token, node: Node) -> None:
        for topic in node.config.topics:
            task = NewExternalTask(run.new_id(), topic, token.id, node.id)
            token.wait_for(run.effects.external_tasks, task)
            run.record(token.scope, "external_task_created", node.id, {"item_id": str(task.id), "topic": topic})

    def leaves_left(self, node: Node, nodes: Mapping[str, Node]) -> bool:
        return True  # the task of whoever did not answer


@pytest.fixture
def definition() -> Iterator[ProcessDefinition]:
    reading = support.registered("{urn:test:race}race", support.Supported("race", "activity", parse_race))
    with reading, registry.registered("race", Race()):
        result = read_files([("asking.bpmn", MODEL)])
        assert not result.problems, result.problems
        ((_, read),) = result.definitions
        yield read


def test_a_new_element_is_read_and_run_without_a_change_to_the_engine(definition: ProcessDefinition) -> None:
    run = World(definition).start()
    assert [(task.topic, task.element_id) for task in run.last.external_tasks] == [("north", "ask"), ("south", "ask")]
    (before,) = run.tokens
    run.complete("ask", answer=42)
    assert run.open == ["read"], "the other task went by cascade"
    assert run.last.gone_tokens == [before]
    assert run.complete("read").final == {"answer": 42}


def test_a_kind_has_one_behaviour(definition: ProcessDefinition) -> None:
    assert "race" in registry.BEHAVIOURS
    with pytest.raises(ValueError, match="already run by Race"):
        registry.register("race", Race())


def test_without_its_parser_the_file_is_refused_and_without_its_behaviour_it_is_a_bug() -> None:
    assert read_files([("asking.bpmn", MODEL)]).problems
    with pytest.raises(InvariantBroken, match="no behaviour is registered for kind race"):
        registry.behaviour_of(Node("ask", "race"))


def test_every_supported_kind_has_a_behaviour() -> None:
    """The reader lets no kind through that the core cannot run."""
    assert frozenset().union(*(supported.kinds for supported in support.TABLE.values())) <= set(registry.BEHAVIOURS)
