"""What a file says, whatever its formatting: the same fingerprint means the same content, so no new version.

Canonical XML (C14N 1.0) without comments, processing instructions and the blanks between elements: line ends,
indentation, the order of attributes, quotes and the encoding do not count; text, attributes and the diagram do.
"""

from __future__ import annotations

import hashlib

from lxml import etree

from engine.bpmn.xml import parse_xml


def fingerprint(data: bytes) -> bytes:
    """SHA-256 of the canonical form. Raises Unreadable as the reader does."""
    root = parse_xml(data)
    for element in root.iter():
        if len(element) and _blank(element.text):
            element.text = None
        if _blank(element.tail):
            element.tail = None
    return hashlib.sha256(etree.tostring(root, method="c14n", with_comments=False)).digest()


def _blank(text: str | None) -> bool:
    return text is not None and not text.strip()
