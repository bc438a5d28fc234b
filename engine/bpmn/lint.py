"""Advice about models that may be deployed: what is allowed, and still surprises those who draw, run or read it.

Nothing here keeps a model from being deployed, and a deployment does not ask it; `baton check` does. Each rule has a name, so
that an author can leave it out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from engine.bpmn import names
from engine.bpmn.definition import (
    BoundaryConfig,
    CatchConfig,
    Flow,
    Node,
    ProcessDefinition,
    ServiceTaskConfig,
    StartConfig,
    TimerConfig,
    UserTaskConfig,
    event_of,
    events_in,
)
from engine.bpmn.kinds import CHOOSING, GATEWAYS
from engine.bpmn.misspelled import misspelled
from engine.bpmn.xml import parse_xml

PLACEHOLDERS = ("todo", "tbd", "xxx", "handler")

_ZONED = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$")
_WITH_A_TIME = re.compile(r"\d{4}-?\d\d-?\d\d(T|$)")


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing that an author may want to change. `rule` is a key of RULES."""

    rule: str
    element_id: str
    line: int | None
    what: str
    why: str


def advise(definition: ProcessDefinition, content: bytes, *, without: Collection[str] = ()) -> list[Advice]:
    """What every rule but those in `without` has to say, by line. `content`: the file that the definition was read from."""
    model = _Model(definition, *_places(content))
    found = [
        Advice(rule, key, model.lines.get(key), what, why)
        for rule, judge in RULES.items()
        if rule not in without
        for key, what, why in judge(model)
    ]
    return sorted(found, key=lambda advice: (advice.line or 0, advice.element_id, advice.rule))


@dataclass(frozen=True, slots=True)
class _Model:
    definition: ProcessDefinition
    lines: Mapping[str, int | None]
    zoned: Collection[str]  # elements for which the file names a zone

    @property
    def nodes(self) -> Iterator[Node]:
        """Those of the file: parts of multiple events are within them."""
        return (node for node in self.definition.nodes.values() if event_of(self.definition, node) is node)

    def flows(self, keys: Collection[str]) -> list[Flow]:
        return [self.definition.flows[key] for key in keys]


def _places(content: bytes) -> tuple[dict[str, int | None], set[str]]:
    lines: dict[str, int | None] = {}
    zoned: set[str] = set()
    for element in parse_xml(content).iter():
        if not isinstance(element.tag, str) or (key := element.get("id")) is None:
            continue
        lines[key] = names.line(element)
        around = [element, *element.iterancestors(), *element]  # a timer's zone stands on it, its event, or its process
        if any(place.get(f"{{{names.BATON}}}timeZone") for place in around if isinstance(place.tag, str)):
            zoned.add(key)
    return lines, zoned


Found = Iterator[tuple[str, str, str]]  # element, what, why


def _one_way_through(model: _Model) -> Found:
    for node in model.nodes:
        if node.kind in GATEWAYS and len(node.incoming) == len(node.outgoing) == 1:
            yield node.id, f"{_called(node)} has one flow in and one flow out", "no gateway, or more flows"


def _joins_and_splits(model: _Model) -> Found:
    for node in model.nodes:
        if node.kind in GATEWAYS and node.kind != "complex_gateway" and len(node.incoming) > 1 and len(node.outgoing) > 1:
            yield node.id, f"{_called(node)} joins and splits at once", "two gateways, so that a reader sees which is which"


def _unconditional_split(model: _Model) -> Found:
    for node in model.nodes:
        plain = [flow for flow in model.flows(node.outgoing) if flow.condition is None and flow.id != node.default]
        if node.kind not in GATEWAYS and len(plain) > 1:
            yield node.id, f"{len(plain)} flows leave {_called(node)} at the same time", "a parallel gateway that says so"


def _nameless_choice(model: _Model) -> Found:
    for node in model.nodes:
        if node.kind not in CHOOSING or len(node.outgoing) < 2:
            continue
        for flow in model.flows(node.outgoing):
            if not flow.name and flow.id != node.default:
                yield flow.id, f"the flow from {_called(node)} to {flow.target!r} has no name", "the answer that it stands for"


def _same_name_twice(model: _Model) -> Found:
    for node in model.nodes:
        used = Counter(flow.name for flow in model.flows(node.outgoing) if flow.name)
        for name in (name for name, times in used.items() if times > 1):
            yield node.id, f"{used[name]} flows that leave {_called(node)} have the name {name!r}", "a name of its own for each"


def _no_way_out(model: _Model) -> Found:
    for node in model.nodes:
        if node.kind in CHOOSING and len(node.outgoing) > 1 and node.default is None:
            yield node.id, f"{_called(node)} has no default flow", "one: a case for which no condition is true stops with an incident"


def _nobodys_task(model: _Model) -> Found:
    for node in model.nodes:
        match node.config:
            case UserTaskConfig(assignee=None, candidate_users=(), candidate_groups=()):
                yield node.id, f"{_called(node)} has neither an assignee nor candidates", "people: else only operators see and assign it"


def _nameless_task(model: _Model) -> Found:
    for node in model.nodes:
        if isinstance(node.config, UserTaskConfig) and not node.name:
            yield node.id, f"the user task {node.id!r} has no name", "the name under which people find it in their inbox"


def _zoneless_timer(model: _Model) -> Found:
    for node in model.definition.nodes.values():
        event = event_of(model.definition, node)
        for timer in _timers(node):
            if event.id not in model.zoned and _depends_on_a_zone(timer):
                what = f"{timer.expression.text!r} of {_called(event)} is a time of the wall clock, read in UTC"
                yield event.id, what, "baton:timeZone, or a time with a zone"


def _timers(node: Node) -> list[TimerConfig]:
    if not isinstance(node.config, StartConfig | BoundaryConfig | CatchConfig):
        return []
    return [event.timer for event in events_in(node.config) if event.timer is not None]


def _depends_on_a_zone(timer: TimerConfig) -> bool:
    """Only what can be seen: plain text. An expression may give a time with a zone."""
    text = timer.expression.text.strip()
    if timer.zone != "UTC" or not timer.expression.is_constant or "[" in text or "TZ=" in text:
        return False
    match timer.type:
        case "date":
            return _ZONED.search(text.partition("T")[2]) is None
        case "cycle" if text.startswith("R"):
            start = text.split("/")[1] if text.count("/") == 2 else ""
            return bool(_WITH_A_TIME.match(start)) and _ZONED.search(start.partition("T")[2]) is None
        case "cycle":
            return True
    return False


def _nameless_handler(model: _Model) -> Found:
    """What looks like a value that was forgotten."""
    for node in model.nodes:
        match node.config:
            case ServiceTaskConfig(work="handler", topic=topic) if topic.lower() in PLACEHOLDERS:
                yield node.id, f"{_called(node)} is bound to {topic!r}", "the name of a handler"


def _misspelled(model: _Model) -> Found:
    for found in misspelled(model.definition):
        what = f"{found.read!r} is read here, and nothing sets it; {found.set!r} is set"
        yield found.element_id, what, f"{found.set!r}, if that was meant"


def _called(node: Node) -> str:
    kind = node.kind.replace("_", " ")
    return f"the {kind} {node.name!r}" if node.name else f"the {kind} {node.id!r}"


RULES: Mapping[str, Callable[[_Model], Found]] = {
    "one-way-gateway": _one_way_through,
    "join-and-split": _joins_and_splits,
    "implicit-split": _unconditional_split,
    "unnamed-choice": _nameless_choice,
    "same-name-twice": _same_name_twice,
    "no-default-flow": _no_way_out,
    "task-without-people": _nobodys_task,
    "unnamed-task": _nameless_task,
    "timer-without-zone": _zoneless_timer,
    "forgotten-handler": _nameless_handler,
    "misspelled-variable": _misspelled,
}
