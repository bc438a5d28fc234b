"""One row of the tables: an element, or an event in one position."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """`tag` and `event` are the key in the table of what is supported; no tag: a text about what is no element there.

    `elsewhere`: Camunda 7, Camunda 8, Flowable, SpiffWorkflow.
    """

    part: str  # the heading
    what: str  # the first column
    tag: str | None
    event: str | None
    here: str
    elsewhere: tuple[str, str, str, str]
