"""Data of multi-instance activities (10.3.8.2): the collection that they are over, and the results that they collect.

Data elements are variables of their names: a loopDataInputRef names a data object, a property, or a data input of the activity, whose
association says where it comes from; a text that is the id of nothing is the name of a variable itself, as vendors have it.
"""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.names import BATON, CAMUNDA_LIKE, Element
from engine.expressions import Expression

DEPTH = 10  # associations from one data element to the next


def item(loop: Element, tag: str) -> str | None:
    """The variable of one instance: the name of the inputDataItem or outputDataItem, else its id."""
    found = next(names.bpmn(loop, tag), None)
    return None if found is None else found.get("name") or found.get("id")


def referred(activity: Element, loop: Element, tag: str, context: Context) -> str:
    """The variable, or the expression, that a loopDataInputRef or loopDataOutputRef stands for."""
    reference = next(names.bpmn(loop, tag), None)
    if reference is None:
        return ""
    text = names.text(reference).strip()
    if not text:
        context.problem(reference, f"the {tag} of {named(activity)} is empty", "the id of a data element, or the name of a variable")
        return ""
    if text.startswith(("$", "#")):
        return text
    associations = "dataInputAssociation" if tag == "loopDataInputRef" else "dataOutputAssociation"
    variable = _variable(activity, names.reference(text) or text, associations, context)
    return variable if variable.isidentifier() else f"${{`{variable}`}}"


def output(activity: Element, loop: Element, zeebe: Element | None, context: Context) -> tuple[str | None, Expression | None]:
    """The variable that collects, and what one instance adds to it.

    zeebe:loopCharacteristics outputCollection and outputElement; baton: or camunda-like outputCollection with outputElement;
    or the loopDataOutputRef with its outputDataItem, the variable of one instance.
    """
    where = f"the outputElement of {named(activity)}"
    if zeebe is not None and zeebe.get("outputCollection") is not None:
        return _both(activity, loop, zeebe.get("outputCollection"), context.zeebe(loop, zeebe.get("outputElement"), where), context)
    spaces = (BATON, *CAMUNDA_LIKE)
    collection = context.attribute(loop, "outputCollection", *spaces)
    element = context.expression(loop, context.attribute(loop, "outputElement", *spaces), where)
    if collection is None:
        collection = referred(activity, loop, "loopDataOutputRef", context).removeprefix("${`").removesuffix("`}") or None
        single = item(loop, "outputDataItem")
        element = context.expression(loop, f"${{`{single}`}}", where) if single else element
    if collection is None and element is None:
        return None, None
    return _both(activity, loop, collection, element, context)


def _both(
    activity: Element, loop: Element, collection: str | None, element: Expression | None, context: Context
) -> tuple[str | None, Expression | None]:
    if collection is None or not collection.strip() or element is None:
        lacks = "what one instance adds" if element is None else "the variable that collects"
        why = "an outputCollection with an outputElement, or a loopDataOutputRef with an outputDataItem"
        context.problem(loop, f"{named(activity)} collects results and does not say {lacks}", why)
        return None, None
    return collection.strip(), element


def _variable(activity: Element, wanted: str, associations: str, context: Context) -> str:
    """Follow associations and references from a data element to the variable that it is (engine.bpmn.data)."""
    for _ in range(DEPTH):
        data = context.data.get(wanted)
        if data is None:
            return wanted
        following = names.reference(data.get("dataObjectRef")) or _associated(activity, wanted, associations)
        if following is None or following == wanted or following not in context.data:
            return (data.get("name") or wanted).strip()
        wanted = following
    return wanted


def _associated(activity: Element, wanted: str, tag: str) -> str | None:
    """The other end of the data association of the activity that has this end."""
    here, there = ("targetRef", "sourceRef") if tag == "dataInputAssociation" else ("sourceRef", "targetRef")
    for association in names.bpmn(activity, tag):
        if wanted in [names.text(each).strip() for each in names.bpmn(association, here)]:
            return next((names.text(each).strip() for each in names.bpmn(association, there)), None)
    return None
