"""Lanes (BPMN 2.0.2, 10.7) say who does the work where the author asks for it: `baton:assignment="lane"`.

The attribute stands on the process or on the laneSet. A user task without an assignee and without candidates of its own is then
offered to the group that has the name of the innermost lane that it lies in.
"""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.names import BATON, BPMN, Element
from engine.expressions import Expression

BY_LANE = "lane"


def assigning(root: Element, context: Context) -> dict[str, Element]:
    """The innermost lane of each element whose lanes assign."""
    found: dict[str, Element] = {}
    for process in names.bpmn(root, "process"):
        whole = _asked(process, context)
        for lane_set in names.bpmn(process, "laneSet"):
            if _asked(lane_set, context) or whole:
                for lane in lane_set.iter(f"{{{BPMN}}}lane"):  # outer lanes come before the lanes within them
                    found.update(
                        (key, lane) for reference in names.bpmn(lane, "flowNodeRef") if (key := names.reference(names.text(reference)))
                    )
    return found


def _asked(place: Element, context: Context) -> bool:
    text = context.attribute(place, "assignment", BATON)
    if text is not None and text.strip() != BY_LANE:
        context.problem(place, f"{named(place)} has baton:assignment {text!r}", f"{BY_LANE!r}, or nothing")
    return text is not None and text.strip() == BY_LANE


def group_of(task: Element, context: Context) -> tuple[Expression, ...]:
    """The group that a user task is offered to because of its lane; nothing where its lane does not assign."""
    lane = context.lanes.get(task.get("id") or "")
    if lane is None:
        return ()
    name = (lane.get("name") or "").strip()
    if not name:
        context.problem(lane, f"{named(lane)} assigns {named(task)} and has no name", "the name of a group")
        return ()
    group = context.expression(lane, name, f"the name of {named(lane)}")
    return () if group is None else (group,)
