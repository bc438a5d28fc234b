"""How operations says numbers of seconds, elements by name, and errors in one line."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from flask import current_app

from engine.bpmn.definition import BoundaryConfig, ProcessDefinition
from engine.config import Settings
from engine.db.definitions import DefinitionRefused, compiled
from engine.queries.work import LeaseRow
from webapp.db import command_connection
from webapp.operations.model_text import name_of

MINUTE, HOUR, DAY = 60, 3600, 86400
SHOWN = 2_000


def model_of(definition_id: UUID | None) -> ProcessDefinition | None:
    """The compiled model, or None for one that today's rules refuse: its pages go on with ids instead of names (S48)."""
    if definition_id is None:
        return None
    try:
        return compiled(command_connection(), definition_id)
    except DefinitionRefused:
        return None


def element_name(definition_id: UUID | None, element_id: str | None) -> str:
    """What the model calls an element; its id if it has no name. The job of a large cancel, and a signal from outside, have none."""
    if element_id is None:
        return ""
    if element_id == "":
        return "The whole case" if definition_id is not None else "From outside"
    model = model_of(definition_id)
    node = model.nodes.get(element_id) if model else None
    if model is not None and node is not None and not node.name and isinstance(node.config, BoundaryConfig) and node.config.compensate:
        return f"Compensation of {name_of(model.nodes[node.config.attached_to])}"
    return (node.name if node else "") or element_id


def condition_of(model: ProcessDefinition | None, event_id: str) -> str:
    """The condition that an event waits for, as the model has it."""
    node = model.nodes.get(event_id) if model else None
    condition = getattr(node.config, "condition", None) if node else None
    return condition.expression.text if condition is not None else ""


def first_line(text: str | None) -> str:
    """The line of an error that says most: the first that is not empty."""
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")


def seconds_words(seconds: float) -> str:
    """ "58 s", "3:36 min", "5:02 h", "2 d 3 h". Never negative."""
    whole = max(int(seconds), 0)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE}:{whole % MINUTE:02} min"
    if whole < DAY:
        return f"{whole // HOUR}:{whole % HOUR // MINUTE:02} h"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def short_words(seconds: float) -> str:
    """ "58 s", "3 min", "5 h", "2 d": where the row has little room."""
    whole = max(int(seconds), 0)
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def age_words(seconds: float) -> str:
    """ "58 s ago"."""
    return f"{short_words(seconds)} ago"


def clock(seconds: float) -> tuple[str, str]:
    """The same in two parts, for a tile: ("4:12", "min")."""
    number, _, unit = seconds_words(seconds).partition(" ")
    return number, unit


def lease_width(left: float, total: float) -> str:
    """The share of a lease that is left, for the bar's `width`."""
    return f"{100 * max(0.0, min(1.0, left / total if total > 0 else 0.0)):.0f}%"


def lease_words(left: float, total: float) -> str:
    """ "16 s of 30 s", "3:36 of 5 min": what static/js/operations.js counts down. Not for a lease that ended."""
    whole, of = max(int(left), 0), max(round(total), 1)
    if of < 2 * MINUTE:
        return f"{whole} s of {of} s"
    return f"{whole // MINUTE}:{whole % MINUTE:02} of {of // MINUTE} min"


def lease_total(row: LeaseRow) -> float:
    """How long one lease is. A renewed one lies further from its acquisition than that, so our workers' own length counts."""
    if row.work == "external_task":
        return row.total_seconds
    settings: Settings = current_app.config["BATON"]
    return min(row.total_seconds, max(settings.lease_seconds, row.left_seconds))


def variable_text(type: str, value: Any) -> str:
    """A variable as operators read it: the stored value itself, JSON for what has parts, shortened for display only (S34)."""
    match type:
        case "string" | "date" | "datetime":
            shown = str(value)
        case _:
            shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}… ({len(shown):,} characters)"
