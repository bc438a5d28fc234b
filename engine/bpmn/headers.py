"""Texts that a model gives to whoever does the work of a task: zeebe:taskHeaders, zeebe:properties, camunda:properties."""

from __future__ import annotations

from engine.bpmn import names
from engine.bpmn.context import Context
from engine.bpmn.names import BATON, CAMUNDA_LIKE, ZEEBE, Element
from engine.bpmn.noted import note

HOLDERS = {"taskHeaders": "header", "properties": "property"}


def headers(element: Element, context: Context) -> tuple[tuple[str, str], ...]:
    """Key and value of each, in the order of the file. One without a name, or of a name that was there, is not read, and so reported."""
    found: dict[str, str] = {}
    for holder, part in HOLDERS.items():
        for each in context.extensions(element, holder, BATON, ZEEBE, *CAMUNDA_LIKE):
            space = names.namespace(each)
            for child in names.elements(each):
                name = "key" if part == "header" else "name"
                key = str(child.attrib.get(name, "")).strip()
                if child.tag == f"{{{space}}}{part}" and key and key not in found:
                    note(child, name)
                    found[key] = child.get("value") or ""
    return tuple(found.items())
