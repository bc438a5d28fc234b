"""To which registered destination a delivery goes, and behind which others: `baton:destinationName` and `baton:orderingKey`."""

from __future__ import annotations

from engine.bpmn.context import Context, named
from engine.bpmn.names import BATON, Element
from engine.destinations import EXPECTED_NAME, NAME
from engine.expressions import Expression


def of_task(element: Element, work: str, context: Context) -> tuple[str | None, Expression | None]:
    """Name and key of a task that is a delivery; one that is not has neither."""
    if work != "deliver":
        refuse_elsewhere(element, "no delivery", context)
        return None, None
    return name_of((element,), element, context), key_of((element,), element, context)


def name_of(places: tuple[Element, ...], element: Element, context: Context) -> str | None:
    """The destination that the first of these places names. A plain name: who reads the model shall see where it sends to."""
    text = _first(places, "destinationName", context)
    if text is None:
        return None
    if not NAME.fullmatch(text.strip()):
        context.problem(element, f"baton:destinationName of {named(element)} is {text.strip()[:80]!r}", EXPECTED_NAME)
        return None
    return text.strip()


def key_of(places: tuple[Element, ...], element: Element, context: Context) -> Expression | None:
    """Deliveries to one destination under one key go out one after the other."""
    text = _first(places, "orderingKey", context)
    if text is not None and not text.strip():
        context.problem(element, f"baton:orderingKey of {named(element)} is empty", "an expression, such as ${order.customer}")
    return context.expression(element, text, f"baton:orderingKey of {named(element)}")


def refuse_elsewhere(element: Element, what: str, context: Context) -> None:
    """On work that is no delivery they would say nothing."""
    for name in ("destinationName", "orderingKey"):
        if context.attribute(element, name, BATON) is not None:
            why = "a task that is bound to http.deliver or mail.send, or whose message goes to a destination"
            context.problem(element, f"baton:{name} stands at {named(element)}, which is {what}", why)


def _first(places: tuple[Element, ...], name: str, context: Context) -> str | None:
    found = [context.attribute(place, name, BATON) for place in places]
    return next((value for value in found if value is not None), None)
