"""What processes need besides themselves: handlers, workers of topics, and called processes, decisions and forms that are not with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.bpmn.calls import calls_of, decisions_of
from engine.bpmn.definition import PART, Node, ProcessDefinition, ServiceTaskConfig
from engine.forms.references import named_by

KINDS = {"handler": "handler", "external": "topic"}  # how work is done -> what it needs
BROUGHT = ("http.call",)  # by every worker: worker/shipped.py
ORDER = ("handler", "topic", "process", "decision", "form")


@dataclass(frozen=True, slots=True)
class Need:
    """`kind`: handler | topic | process | decision | form. `wanted_by`: process and element, each once."""

    kind: str
    name: str
    wanted_by: tuple[str, ...]

    def __str__(self) -> str:
        return f"needs {self.kind} {self.name}: {', '.join(self.wanted_by)}"


def needs(
    definitions: Sequence[ProcessDefinition], decisions: Sequence[str], handlers: Sequence[str] = (), forms: Sequence[str] = ()
) -> list[Need]:
    """Everything, by kind and name. `handlers`: those that workers have.

    `decisions`, `forms`: keys (of forms also files) that are deployed together with them.
    """
    here = {"process": {each.key for each in definitions}, "decision": set(decisions), "handler": {*BROUGHT, *handlers}, "form": set(forms)}
    wanted: dict[tuple[str, str], dict[str, None]] = {}
    for definition in definitions:
        for kind, name, node in _wanted(definition):
            if name not in here.get(kind, ()):
                wanted.setdefault((kind, name), {})[f"{definition.key} {node.id.partition(PART)[0]}"] = None
    found = [Need(kind, name, tuple(places)) for (kind, name), places in wanted.items()]
    return sorted(found, key=lambda need: (ORDER.index(need.kind), need.name))


def _wanted(definition: ProcessDefinition) -> Iterator[tuple[str, str, Node]]:
    for node in definition.nodes.values():
        if isinstance(node.config, ServiceTaskConfig) and node.config.work in KINDS:
            yield KINDS[node.config.work], node.config.topic, node
    yield from (("process", key, node) for node, key in calls_of(definition))
    yield from (("decision", key, node) for node, key in decisions_of(definition))
    yield from (("form", name, node) for node, name in named_by(definition))
