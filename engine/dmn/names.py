"""Namespaces of DMN, and the small questions that its parsers ask of an element."""

from __future__ import annotations

from collections.abc import Iterator

from engine.bpmn.names import CAMUNDA_LIKE
from engine.bpmn.names import Element as Element
from engine.bpmn.names import elements as elements
from engine.bpmn.names import line as line
from engine.bpmn.names import local as local
from engine.bpmn.names import namespace as namespace
from engine.bpmn.names import split as split
from engine.bpmn.names import text as text

# One vocabulary, whatever the version says: what a later one adds is refused by its name.
DMN = (
    "https://www.omg.org/spec/DMN/20191111/MODEL/",  # 1.3
    "http://www.omg.org/spec/DMN/20180521/MODEL/",  # 1.2
    "http://www.omg.org/spec/DMN/20151101/dmn.xsd",  # 1.1
    "http://www.omg.org/spec/DMN/20151101/dmn11.xsd",  # 1.1, as the first editors wrote it
    "https://www.omg.org/spec/DMN/20211108/MODEL/",  # 1.4
    "https://www.omg.org/spec/DMN/20230324/MODEL/",  # 1.5
)
# Drawn: decision requirement diagrams of every version. Nothing depends on them.
DRAWINGS = (
    "https://www.omg.org/spec/DMN/20191111/DMNDI/",
    "http://www.omg.org/spec/DMN/20180521/DMNDI/",
    "https://www.omg.org/spec/DMN/20230324/DMNDI/",
    "http://www.omg.org/spec/DMN/20180521/DI/",
    "http://www.omg.org/spec/DMN/20180521/DC/",
    "http://bpmn.io/schema/dmn/biodi/1.0",
    "http://bpmn.io/schema/dmn/biodi/2.0",
)
TOOLS = frozenset(
    {
        *DRAWINGS,
        "http://camunda.org/schema/modeler/1.0",
        "http://www.w3.org/XML/1998/namespace",
        "http://www.w3.org/2001/XMLSchema-instance",
    }
)
CAMUNDA = ("http://camunda.org/schema/1.0/dmn", "http://operaton.org/schema/1.0/dmn", *CAMUNDA_LIKE)
ZEEBE = "http://camunda.org/schema/zeebe/1.0"
_PREFIXES = {CAMUNDA[0]: "camunda", CAMUNDA[1]: "operaton", ZEEBE: "zeebe"}


def tag(element: Element) -> str:
    """The local name of an element of DMN; the whole tag of any other, which no name is equal to."""
    space, name = split(str(element.tag))
    return name if space in DMN else f"{{{space}}}{name}"


def shown(name: str) -> str:
    """A tag or attribute as people write it."""
    space, short = split(name)
    if space == "" or space in DMN:
        return short
    return f"{_PREFIXES[space]}:{short}" if space in _PREFIXES else f"{short} ({space})"


def children(parent: Element, *names: str) -> Iterator[Element]:
    """The children of these DMN tags, in order."""
    return (child for child in elements(parent) if tag(child) in names)


def child(parent: Element, *names: str) -> Element | None:
    """The first of them."""
    return next(children(parent, *names), None)


def text_in(parent: Element | None) -> str:
    """What its `text` says, blanks around it left out; nothing for none."""
    holder = child(parent, "text") if parent is not None else None
    return text(holder).strip() if holder is not None else ""


def target(element: Element) -> str:
    """The id that an href leads to: `#id`, or `namespace#id`."""
    return (element.get("href") or "").strip().rpartition("#")[2]


def named(element: Element) -> str:
    """An element as problems call it: its tag with its name or id."""
    label = element.get("name") or element.get("label") or element.get("id")
    what = shown(str(element.tag))
    return f"{what} '{' '.join(label.split())[:80]}'" if label else f"a {what} without id"
