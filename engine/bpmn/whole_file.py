"""A whole file as its checks see it: elements by id, what references lead to, items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.bpmn import names
from engine.bpmn.context import Context, named
from engine.bpmn.names import BATON, BPMN, CAMUNDA_LIKE, JBPM, ZEEBE, Element

DATA_OBJECT = "dataObjectReference"

PLATFORM = "{http://camunda.org/schema/modeler/1.0}executionPlatform"  # what an author of Camunda Modeler chose


@dataclass(frozen=True, slots=True)
class Whole:
    """A file with its executable processes, and every BPMN element by its id."""

    root: Element
    processes: Sequence[Element]
    by_id: dict[str, Element]
    context: Context

    @classmethod
    def of(cls, root: Element, processes: Sequence[Element], context: Context) -> Whole:
        by_id: dict[str, Element] = {}
        for element in root.iter(f"{{{BPMN}}}*"):
            if key := element.attrib.get("id"):
                by_id.setdefault(key, element)
        return cls(root, processes, by_id, context)

    def problem(self, element: Element, what: str, why: str) -> None:
        self.context.problem(element, f"{named(element)} {what}", why)

    def to(self, reference: str | None) -> Element | None:
        """What a reference leads to."""
        return self.by_id.get(names.reference(reference) or "")

    def texts(self, element: Element, *tags: str) -> list[str]:
        """The references that stand as text in children of these tags."""
        return [found for child in names.bpmn(element, *tags) if (found := names.reference(names.text(child)))]

    def item(self, element: Element | None) -> Element | None:
        """The item definition of data, a message, a signal, an error or an escalation."""
        if element is None:
            return None
        if names.local(element) == DATA_OBJECT:
            return self.item(self.to(element.get("dataObjectRef")))
        return self.to(element.get("itemSubjectRef") or element.get("itemRef") or element.get("structureRef"))

    def within(self, *tags: str) -> Iterator[Element]:
        """Elements of these tags in the executable processes."""
        for process in self.processes:
            for tag in tags:
                yield from process.iter(f"{{{BPMN}}}{tag}")


def by_a_vendor(root: Element) -> bool:
    """Whether the root declares a namespace of ours or of a vendor, or says that it is made for one."""
    if str(root.attrib.get(PLATFORM, "")).startswith("Camunda"):
        return True
    return not {BATON, ZEEBE, JBPM, *CAMUNDA_LIKE}.isdisjoint(root.nsmap.values())


def same_item(one: Element | None, other: Element | None) -> bool:
    """Whether two item definitions mean the same: the same one, or the same structure."""
    if one is None or other is None:
        return one is other
    return structure(one) == structure(other)


def structure(item: Element) -> tuple[str, str | None]:
    """What an item is like; one without a structure is like itself alone."""
    found = item.get("structureRef")
    return ("structure", found) if found is not None else ("item", item.get("id"))


Rule = Callable[[Whole], None]
