"""What elements of a file refer to: ids that are unique, where each one is, and event definitions that several events share.

Sequence flows need no id in BPMN (8.2.1); here history says by it which flow was taken, so those without get one: decision 0070.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field

from lxml import etree

from engine.bpmn import names, support, unread
from engine.bpmn.context import MAX_NAME, Context, named
from engine.bpmn.names import BPMN, Element

LONGEST_MADE = MAX_NAME - 20  # room for a number behind it
MAX_COPIED = 2_000_000  # bytes of the event definitions that events refer to


def check_ids(root: Element, processes: list[Element], context: Context) -> None:
    """Ids are unique in a file. Those of diagrams are not looked at: nothing refers to them."""
    first: dict[str, Element] = {}
    for top in names.elements(root):
        if names.namespace(top) != BPMN or (names.local(top) == "process" and top not in processes):
            continue
        for element in top.iter(f"{{{BPMN}}}*"):
            key = element.attrib.get("id")
            if key is None:
                continue
            if len(key) > MAX_NAME:
                context.problem(element, f"the id of {named(element)} has {len(key)} characters", f"at most {MAX_NAME}")
            if key in first:
                earlier = first[key]
                if names.local(element) != "process" or names.local(earlier) != "process":  # named over all files
                    where = f"{named(earlier)} in line {earlier.sourceline}"
                    context.problem(element, f"{named(element)} has the id {key!r} of {where}", "an id of its own")
            first.setdefault(key, element)


def name_flows(root: Element, processes: list[Element]) -> None:
    """Each sequence flow without an id gets one made of its ends: the same for the same content, and no other element's."""
    taken = {str(element.attrib["id"]) for element in root.iter() if element.attrib.get("id")}
    numbers: Counter[str] = Counter()  # where to go on, so that many flows between two elements are not a quadratic search
    for process in processes:
        for flow in process.iter(f"{{{BPMN}}}sequenceFlow"):
            if not flow.get("id"):
                wanted = _of_ends(flow)
                numbers[wanted] += 1
                key = wanted if numbers[wanted] == 1 else f"{wanted}-{numbers[wanted]}"
                while key in taken:
                    numbers[wanted] += 1
                    key = f"{wanted}-{numbers[wanted]}"
                taken.add(key)
                flow.set("id", key)


def _of_ends(flow: Element) -> str:
    ends = [str(names.reference(flow.get(end)) or "") for end in ("sourceRef", "targetRef")]
    key = "-to-".join(ends)
    if len(key) <= LONGEST_MADE:
        return key
    return f"flow-{hashlib.sha256(chr(0).join(ends).encode()).hexdigest()[:32]}"


def resolve_event_definitions(root: Element, processes: list[Element], context: Context) -> None:
    """10.5.5: an event may refer to an event definition beside the processes. It is read as if it stood in the event."""
    shared = {child.get("id"): child for child in names.elements(root) if names.local(child).endswith("EventDefinition")}
    context.event_definitions = {str(key): each for key, each in shared.items() if key}
    room = MAX_COPIED
    for process in processes:
        for reference in list(process.iter(f"{{{BPMN}}}eventDefinitionRef")):
            event, wanted = reference.getparent(), names.reference(names.text(reference))
            found = shared.get(wanted)
            if event is None:
                continue
            if found is None:
                what = f"{named(event)} refers to the event definition {wanted!r}, which does not exist"
                context.problem(event, what, "the id of an event definition beside the processes of this file")
                continue
            room -= len(etree.tostring(found))
            if room < 0:  # a few lines could stand for gigabytes
                why = f"at most {MAX_COPIED:,} bytes of them, counted at each event"
                context.problem(event, "the event definitions that events refer to are too large", why)
                return
            definition = deepcopy(found)
            context.stands_for(definition, found)
            if "id" in definition.attrib:
                del definition.attrib["id"]  # it would be there twice
            unread.report(reference, context)
            event.replace(reference, definition)


@dataclass(slots=True)
class Places:
    """The process and scope of every flow node by id, whether it is supported or not, so that references can be judged."""

    scope: dict[str, tuple[str, str | None]] = field(default_factory=dict)  # id -> (process, enclosing subprocess)
    tags: dict[str, Element] = field(default_factory=dict)  # id -> any element with an id
    count: int = 0

    @classmethod
    def of(cls, processes: list[Element]) -> Places:
        places = cls()
        for process in processes:
            places._fill(process, process.get("id") or f"line {process.sourceline}", None)
        return places

    def _fill(self, container: Element, process: str, scope: str | None) -> None:
        for child in names.elements(container):
            self.count += 1
            key = child.attrib.get("id")
            if key is None:
                continue
            self.tags.setdefault(key, child)
            if _may_be_node(child):
                self.scope.setdefault(key, (process, scope))
                self._fill(child, process, key)


def _may_be_node(element: Element) -> bool:
    """Whether a flow may lead to it: everything but flows, and what is ignored or belongs to data."""
    tag = names.local(element) if names.namespace(element) == BPMN else str(element.tag)
    return (
        tag != "sequenceFlow"
        and tag not in support.IGNORED | support.DATA | support.COMMON_CHILDREN
        and not tag.endswith("EventDefinition")
    )
