"""Which work of a case is done one at a time: `baton:exclusive`, and what `camunda:exclusive` says of handlers (decision 0097)."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.names import BATON, BPMN, CAMUNDA_LIKE, Element


def of(element: Element, work: str, context: Context) -> bool:
    """Whether an element's work waits for other such work of its case. `work`: handler | external | deliver.

    Its own word goes before that of its process. The vendors' attribute is about jobs, so it says nothing of external tasks; and
    a delivery waits for nobody.
    """
    process = next(element.iterancestors(f"{{{BPMN}}}process"), None)
    whole = None if process is None else context.attribute(process, "exclusive", BATON)
    if work == "deliver":
        return False
    own = context.attribute(element, "exclusive", BATON)
    if own is not None:
        return _flag(own, element, f"baton:exclusive of {named(element)}", context)
    if work == "handler":
        given = next((tag for space in CAMUNDA_LIKE if (tag := f"{{{space}}}exclusive") in element.attrib), None)
        if given is not None and names.is_flag(str(element.attrib[given])):
            return names.flag(element.get(given), default=False)
    return whole is not None and _flag(whole, element, f"baton:exclusive of the process around {named(element)}", context)


def _flag(text: str, element: Element, what: str, context: Context) -> bool:
    if not names.is_flag(text):
        context.problem(element, f"{what} is {text!r}", "true or false")
    return names.flag(text, default=False)
