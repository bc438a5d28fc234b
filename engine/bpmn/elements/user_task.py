"""User task (BPMN 2.0.2, 10.3.4.1), with the attributes of Camunda 7 and Zeebe that say who, until when, and what."""

from __future__ import annotations

from engine.bpmn import form_references, forms, lanes, mappings, names, resource_roles, stand_ins
from engine.bpmn.context import Context, named
from engine.bpmn.definition import UserTaskConfig
from engine.bpmn.names import ZEEBE, Element
from engine.bpmn.support import Supported, register
from engine.expressions import Expression


def register_all() -> None:
    register("userTask", Supported("user_task", "activity", parse, conditional=True, children=resource_roles.ROLES))


def parse(element: Element, context: Context) -> UserTaskConfig:
    assignment = context.extension(element, "assignmentDefinition", ZEEBE)
    schedule = context.extension(element, "taskSchedule", ZEEBE)
    context.extension(element, "userTask", ZEEBE)  # marks the kind, and says no more
    roles = resource_roles.read(element, context)
    assignee = _one(element, "assignee", assignment, context)
    if assignee is not None and roles.assignee:
        context.problem(element, f"{named(element)} has an assignee and a performer", "one of them")
    assignee = assignee or next(iter(roles.assignee), None)
    users, groups = (_many(element, name, assignment, context) for name in ("candidateUsers", "candidateGroups"))
    users, groups = (*users, *roles.users), (*groups, *roles.groups)
    if assignee is None and not users and not groups:
        groups = lanes.group_of(element, context)
    outputs = mappings.outputs(element, context)
    return UserTaskConfig(
        assignee=assignee,
        candidate_users=users,
        candidate_groups=groups,
        due=_one(element, "dueDate", schedule, context),
        follow_up=_one(element, "followUpDate", schedule, context),
        zone=context.zone(element, element),
        priority=_one(element, "priority", context.extension(element, "priorityDefinition", ZEEBE), context),
        name=_name(element, context),
        about=context.expression(element, context.attribute(element, "about", names.BATON), f"baton:about of {named(element)}"),
        fields=forms.fields(element, context),
        form=form_references.read(element, context),
        inputs=mappings.inputs(element, context, with_data=False),
        outputs=outputs,
        # Camunda 7 sets what was sent, and then the outputs; Camunda 8 the outputs alone, if there are any (decision 0083).
        keeps=not outputs or context.extension(element, "ioMapping", ZEEBE) is None,
    )


def _one(element: Element, name: str, zeebe: Element | None, context: Context) -> Expression | None:
    where = f"{name} of {named(element)}"
    given = context.expression(element, context.attribute(element, name), where, instead=stand_ins.name_of(element, name))
    if given is None and zeebe is not None:
        return context.zeebe(element, zeebe.get(name), where)
    return given


def _many(element: Element, name: str, zeebe: Element | None, context: Context) -> tuple[Expression, ...]:
    where = f"{name} of {named(element)}"
    given = context.expressions(element, context.attribute(element, name), where, instead=stand_ins.name_of(element, name))
    text = zeebe.get(name) if zeebe is not None else None
    if given or text is None:
        return given
    if text.strip().startswith("="):
        single = context.zeebe(element, text, where)
        return (single,) if single is not None else ()
    return context.expressions(element, text, where)


def _name(element: Element, context: Context) -> Expression | None:
    name = context.expression(element, element.get("name"), f"the name of {named(element)}")
    return None if name is None or name.is_constant else name
