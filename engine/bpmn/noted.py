"""Elements that remember what was asked of them, so that what nobody asked for can be told (`unread.py`).

A list of what parsers understand can be wrong: an attribute may stand in it and be read nowhere, or only elsewhere. So reading itself
is noted: `get` notes the attribute, `names.text` the text, and whoever takes a child by its name notes the child. What only looks at
everything alike (ids of a file, messages about an element) goes through `attrib`, which notes nothing.

lxml makes the Python object of an element anew when nobody holds it, and its notes would be gone: whoever reads them holds all of them.
"""

from __future__ import annotations

from typing import Any

from lxml import etree

ITSELF = ""  # the element was asked for by its name
TEXT = "#text"


class Noted(etree.ElementBase):
    """`asked`: tags of attributes, ITSELF, TEXT."""

    asked: set[str]

    def _init(self) -> None:
        self.asked = set()

    def get(self, key: Any, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


LOOKUP = etree.ElementDefaultClassLookup(element=Noted)


def note(element: etree._Element, what: str = ITSELF) -> None:
    """Something other than an attribute was asked of an element. One that we made ourselves keeps no notes."""
    if isinstance(element, Noted):
        element.asked.add(what)


def asked(element: etree._Element) -> set[str]:
    """What was asked of it so far."""
    return element.asked if isinstance(element, Noted) else set()
