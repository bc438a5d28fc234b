"""`camunda:connector`: work that an add-on of Camunda 7 does (http-connector, soap-http-connector, mail). Here a handler of its id."""

from __future__ import annotations

from dataclasses import dataclass

from engine.bpmn import mappings, names
from engine.bpmn.context import Context
from engine.bpmn.names import CAMUNDA_LIKE, Element


@dataclass(frozen=True, slots=True)
class Connector:
    name: str
    mapped: Element | None  # its inputOutput


def of(element: Element, context: Context) -> Connector | None:
    """The connector of a task. One without an id counts as none."""
    found = context.extension(element, "connector", *CAMUNDA_LIKE)
    key = None if found is None else _child(found, "connectorId")
    name = " ".join(names.text(key).split()) if key is not None else ""
    return None if found is None or not name else Connector(name, _child(found, "inputOutput"))


def inputs(connector: Connector, element: Element, context: Context) -> mappings.Mappings:
    """What the connector is given."""
    return mappings.parameters(connector.mapped, "inputParameter", element, context)


def outputs(connector: Connector, element: Element, context: Context) -> mappings.Mappings:
    """What is made of its result. Output parameters of the task itself see it."""
    return mappings.parameters(connector.mapped, "outputParameter", element, context)


def _child(parent: Element, tag: str) -> Element | None:
    return next(names.children(parent, {f"{{{space}}}{tag}" for space in CAMUNDA_LIKE}), None)
