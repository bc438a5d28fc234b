"""The tables of docs/bpmn.md: every element and position of BPMN 2.0.2, what happens here, and in four other engines.

What is supported is asked of `engine.bpmn.support.TABLE`; the texts lie in `elements.py` and `events.py`, a row each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import engine.bpmn.reader  # noqa: F401 - importing it fills the table
from engine.bpmn.coverage.elements import ELEMENTS
from engine.bpmn.coverage.events import EVENTS
from engine.bpmn.coverage.row import Row
from engine.bpmn.support import INSTEAD, TABLE

ROWS: Sequence[Row] = (*ELEMENTS, *EVENTS)
BEGIN = "<!-- The tables from here on are written by `baton bpmn --document`; their texts lie in engine/bpmn/coverage/. -->"
END = "<!-- The tables end here. -->"
HEAD = "| {0} | here | Camunda 7 | Camunda 8 | Flowable | SpiffWorkflow |\n|---|---|---|---|---|---|\n"


def without_text() -> list[str]:
    """Rows of the table of what is supported that no text tells about."""
    told = {(row.tag, row.event) for row in ROWS}
    return sorted(f"{tag} with {event or 'no event definition'}" for tag, event in TABLE if (tag, event) not in told)


def document(page: str) -> str:
    """The page with its tables written anew. Raises ValueError where the page has no place for them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected the lines {BEGIN!r} and {END!r} around the tables, found {'the first only' if begin else 'neither'}")
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def tables() -> str:
    """Activities, gateways and the rest; then the events, by what they are about and where they stand."""
    parts = [f"### {title}\n\n{HEAD.format('element')}{_lines(rows)}" for title, rows in _by_part(ELEMENTS)]
    parts += [f"### {title}\n\n{HEAD.format('where')}{_lines(rows)}" for title, rows in _by_part(EVENTS)]
    return "\n".join(parts)


def _by_part(rows: Sequence[Row]) -> Iterable[tuple[str, list[Row]]]:
    return [(title, list(found)) for title, found in groupby(rows, key=lambda row: row.part)]


def _lines(rows: Iterable[Row]) -> str:
    return "".join(f"| {row.what} | {_here(row)} | {' | '.join(row.elsewhere)} |\n" for row in rows)


def _here(row: Row) -> str:
    if row.tag is None or (row.tag, row.event) in TABLE:
        return row.here
    instead = INSTEAD.get(row.tag)
    return f"**refused** at deployment{f': {instead}' if instead else ''}"
