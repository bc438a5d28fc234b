"""Bytes -> a tree of elements, or the reason why not. The one place where XML is parsed; hardened.

No DOCTYPE (so no entities, no external files), no network, limits on size, tags and depth, encodings checked strictly.
Messages do not depend on the locale of the server.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from lxml import etree

from engine.bpmn.definition import Problem
from engine.bpmn.noted import LOOKUP

MAX_BYTES = 5_000_000
MAX_TAGS = 100_000  # a tenth of it is more than any model that people draw
MAX_DEPTH = 100  # BPMN nests subprocesses; a hundred is beyond every model that people draw

# Codecs by the name that a file declares; anything else is refused rather than guessed.
ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "utf-16": "utf-16",
    "utf-16le": "utf-16",
    "utf-16be": "utf-16",
    "iso-8859-1": "iso-8859-1",
    "latin1": "iso-8859-1",
    "iso-8859-15": "iso-8859-15",
    "windows-1252": "cp1252",
}
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARATION = re.compile(r"""<\?xml\s[^>]{0,200}?\?>""")
_ENCODING = re.compile(r"""encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_PROLOG = re.compile(r"\s+|<\?.*?\?>|<!--.*?-->", re.DOTALL)
_LXML_PLACE = re.compile(r", line \d+, column \d+.*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unreadable(Exception):
    """The file is not a document that may be read."""

    problem: Problem


def parse_xml(data: bytes, *, file: str | None = None) -> etree._Element:
    """The root element. Raises Unreadable with a Problem that says why, and where it is known on which line."""
    _check_size(data, file)
    text = _decoded(data, file)
    _check_doctype(text, file)
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
    )
    parser.set_element_class_lookup(LOOKUP)
    try:
        root = etree.fromstring(text.encode("utf-8"), parser)
    except etree.XMLSyntaxError as error:
        reason = _LXML_PLACE.sub("", error.msg or "unreadable")
        if "depth" in reason.lower():
            raise _too_deep(file, error.lineno) from error
        raise _unreadable(file, error.lineno, f"not well-formed XML: {reason}", "a BPMN 2.0 file in XML") from error
    # The prolog was searched already; this holds should the two ever disagree.
    if root.getroottree().docinfo.internalDTD is not None:
        raise _doctype(file, 1)
    _check_depth(root, file)
    return root


def _unreadable(file: str | None, line: int | None, what: str, why: str) -> Unreadable:
    return Unreadable(Problem(None, line, what, why, file))


def _check_size(data: bytes, file: str | None) -> None:
    if not data.strip(b"\0 \t\r\n"):
        raise _unreadable(file, None, "the file is empty", "a BPMN 2.0 file in XML")
    if len(data) > MAX_BYTES:
        raise _unreadable(file, None, f"the file has {len(data):,} bytes", f"at most {MAX_BYTES:,} bytes")
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        raise _unreadable(file, None, "the file is a ZIP archive", "the BPMN files themselves, each as a file of its own")
    if (tags := data.count(b"<")) > 2 * MAX_TAGS:
        raise _unreadable(file, None, f"the file has some {tags // 2:,} elements", f"at most {MAX_TAGS:,}")


# ---- encodings


def _decoded(data: bytes, file: str | None) -> str:
    marked = next((codec for mark, codec in _MARKS if data.startswith(mark)), None)
    codec = marked or _unmarked_utf16(data)
    head = data[:2000].decode(codec or "iso-8859-1", errors="ignore").lstrip("\ufeff")
    declaration = _DECLARATION.match(head)
    named = _ENCODING.search(declaration[0]) if declaration else None
    declared = named[1] if named else None
    if declared is not None:
        known = ENCODINGS.get(declared.lower())
        if known is None:
            raise _unreadable(file, 1, f"the file declares the encoding {declared}", "UTF-8 (or " + ", ".join(sorted({*ENCODINGS})) + ")")
        if (codec or "").startswith("utf-16") != known.startswith("utf-16") or (marked == "utf-8" and known != "utf-8"):
            found = codec or "single bytes"
            raise _unreadable(
                file, 1, f"the file declares the encoding {declared} but is written in {found}", "one encoding, declared rightly"
            )
        codec = codec or known
    codec = codec or "utf-8"
    try:
        text = data.decode(codec).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = 1 + data[: error.start].count(b"\n")
        what = (
            f"byte {error.start + 1} is not {codec.upper()}, which the file {'declares' if declared else 'must be without a declaration'}"
        )
        raise _unreadable(file, line, what, "one encoding, declared rightly") from error
    # The parser gets UTF-8, so what the file declared must not reach it.
    return _DECLARATION.sub(lambda found: "\n" * found[0].count("\n"), text, count=1) if declaration else text


def _unmarked_utf16(data: bytes) -> str | None:
    start = data[:4]
    if len(start) == 4 and start[1] == 0 == start[3] and start[0] and start[2]:
        return "utf-16-le"
    if len(start) == 4 and start[0] == 0 == start[2] and start[1] and start[3]:
        return "utf-16-be"
    return None


# ---- what is refused though it is XML


def _check_doctype(text: str, file: str | None) -> None:
    at = 0
    while found := _PROLOG.match(text, at):
        at = found.end()
    if text.startswith("<!DOCTYPE", at):
        raise _doctype(file, 1 + text.count("\n", 0, at))


def _doctype(file: str | None, line: int) -> Unreadable:
    return _unreadable(file, line, "the file has a DOCTYPE", "no DOCTYPE: BPMN needs none, and entities are not resolved")


def _too_deep(file: str | None, line: int | None) -> Unreadable:
    return _unreadable(file, line, "the elements are nested too deeply", f"at most {MAX_DEPTH} levels")


def _check_depth(root: etree._Element, file: str | None) -> None:
    depth = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > MAX_DEPTH:
            raise _too_deep(file, element.sourceline)
