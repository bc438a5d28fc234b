"""Message flows between participants (9.4): who may send to whom. They are drawn only; one that cannot be meant is refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from engine.bpmn import names
from engine.bpmn.context import named
from engine.bpmn.flow_checks import INTERMEDIATE, NODES
from engine.bpmn.names import BPMN, Element
from engine.bpmn.whole_file import Rule, Whole

CONVERSATIONS = {"conversation", "subConversation", "callConversation"}
ENDS = frozenset(tag for tag in NODES if not tag.endswith("Gateway")) | {"participant", *CONVERSATIONS}
AN_END = "a participant, an activity or an event"


def _message_flows(whole: Whole) -> Iterator[tuple[Element, Element | None, Element | None]]:
    for collaboration in names.bpmn(whole.root, "collaboration"):
        for flow in names.bpmn(collaboration, "messageFlow"):
            yield flow, whole.to(flow.get("sourceRef")), whole.to(flow.get("targetRef"))


def _ends(whole: Whole) -> None:
    """9.4 and 7.6.2: a message flow leads from a participant, an activity or an event to such."""
    for flow, *ends in _message_flows(whole):
        for end, name in zip(ends, ("sourceRef", "targetRef"), strict=True):
            if end is None:
                whole.problem(flow, f"has the {name} {flow.get(name)!r}, which does not exist", AN_END)
            elif names.local(end) not in ENDS:
                whole.problem(flow, f"has the {name} {flow.get(name)!r}, which is a {names.local(end)}", AN_END)


def _within_one_participant(whole: Whole) -> None:
    """9.4: a message flow connects two participants, or what lies in them."""
    pools = {names.reference(each.get("processRef")): each for each in whole.root.iter(f"{{{BPMN}}}participant") if each.get("processRef")}
    for flow, source, target in _message_flows(whole):
        if source is not None and target is not None and _pool(source, pools) is _pool(target, pools):
            whole.problem(flow, "begins and ends in the same participant", "two participants; within one, a sequenceFlow")


def _pool(end: Element, pools: dict[str | None, Element]) -> Element:
    if names.local(end) == "participant":
        return end
    process = next((each for each in end.iterancestors(f"{{{BPMN}}}process")), end)
    return pools.get(process.get("id"), process)


def _starts_and_ends(whole: Whole) -> None:
    """10.5.2 and 10.5.3: messages go to start events and come from end events that are about a message."""
    for flow, source, target in _message_flows(whole):
        if target is not None and names.local(target) == "startEvent" and not _about_a_message(target):
            whole.problem(flow, f"leads to {named(target)}, which is not about a message", "a start event with a messageEventDefinition")
            whole.problem(target, "gets a message flow and has no messageEventDefinition", "one")
        if target is not None and names.local(target) == "endEvent":
            whole.problem(flow, f"leads to {named(target)}", "no message flow to an end event")
        if source is not None and names.local(source) == "endEvent" and not _about_a_message(source):
            whole.problem(flow, f"leaves {named(source)}, which is not about a message", "an end event with a messageEventDefinition")
            whole.problem(source, "sends a message flow and has no messageEventDefinition", "one")
        if source is not None and names.local(source) == "startEvent":
            whole.problem(flow, f"leaves {named(source)}", "no message flow from a start event")


def _about_a_message(event: Element) -> bool:
    return next(names.bpmn(event, "messageEventDefinition", "eventDefinitionRef"), None) is not None


def _both_ways(whole: Whole) -> None:
    """10.5.4: an intermediate event catches or throws: message flows lead to it or leave it, never both."""
    ways: dict[Element, set[str]] = defaultdict(set)
    for _, source, target in _message_flows(whole):
        for end, way in ((source, "out"), (target, "in")):
            if end is not None and names.local(end) in (*INTERMEDIATE, "boundaryEvent"):
                ways[end].add(way)
    for event, found in ways.items():
        if len(found) == 2:
            whole.problem(event, "has message flows that lead to it and that leave it", "one or the other")


STRICT: tuple[Rule, ...] = (_starts_and_ends,)
RULES: tuple[Rule, ...] = (_ends, _within_one_participant, _both_ways)
