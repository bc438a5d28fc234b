"""What starts a version by itself: the rows that its start events have while it is the newest of its key.

A deployment writes them, and so does the deletion of the version after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from engine.bpmn.definition import MessageConfig, Problem, ProcessDefinition, SignalConfig, TimerConfig, none_start
from engine.commands.start_by_timer import first_occurrence
from engine.commands.transaction import Connection
from engine.core.catching import MAX_NAME
from engine.core.reading import as_text
from engine.core.run import CannotGoOn
from engine.core.timers import SCHEDULE, Due, schedule_of
from engine.db.definitions import DefinitionRefused, compiled
from engine.expressions import ExpressionError
from engine.ids import new_id


@dataclass(frozen=True, slots=True)
class Starts:
    """What starts a model by itself. `timers`: when each is due first, None never; the names of messages and signals, by element."""

    timers: Mapping[str, Due | None]
    messages: Mapping[str, str]
    signals: Mapping[str, str]


class UnusableStarts(Exception):
    """Start events that read well and cannot be judged: an expression that fails, a timer without a time."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(f"{len(problems)} start events cannot be judged")
        self.problems = tuple(problems)


def read_starts(models: Sequence[tuple[ProcessDefinition, str]], now: datetime) -> list[Starts]:
    """One for each (definition, file). Raises UnusableStarts with every problem."""
    problems: list[Problem] = []

    def judged(element_id: str, judge: Callable[[], Any], definition: ProcessDefinition, file: str) -> Any:
        try:
            return judge()
        except (CannotGoOn, ExpressionError) as error:
            why = "a start event that can be judged when it is deployed"
            problems.append(Problem(element_id, definition.nodes[element_id].line, str(error), why, file))

    found = [
        Starts(
            {key: judged(key, partial(first_occurrence, timer, now), *model) for key, timer in _events(model[0], "timer").items()},
            {key: judged(key, partial(_name, message), *model) for key, message in _events(model[0], "message").items()},
            {key: judged(key, partial(_name, signal), *model) for key, signal in _events(model[0], "signal").items()},
        )
        for model in models
    ]
    if problems:
        raise UnusableStarts(problems)
    return found


def has_none_start(definition: ProcessDefinition) -> bool:
    """Whether a person can start it."""
    return none_start(definition) is not None and not definition.called_only


def _starts(definition: ProcessDefinition) -> list[str]:
    """By event, or by part of a multiple one."""
    return [part for key in definition.starts.get(None, ()) for part in definition.parts.get(key, (key,))]


def _events(definition: ProcessDefinition, what: str) -> dict[str, Any]:
    """The start events of this kind: element -> its configuration."""
    found = {key: getattr(definition.nodes[key].config, what, None) for key in _starts(definition)}
    return {key: config for key, config in found.items() if config is not None}


def _name(event: MessageConfig | SignalConfig) -> str:
    name = as_text(event.name.evaluate({}))
    if not name or len(name) > MAX_NAME:
        raise CannotGoOn("expression", f"expected a name of 1 to {MAX_NAME} characters, found {len(name):,} from {event.name.text}")
    return name


# ---- their rows


def subscriptions_of(definition_id: UUID, starts: Starts) -> list[dict[str, Any]]:
    """The subscriptions of a version. Those of the kind `start` take their keys afterwards; a signal is not stored."""
    named = [("start", starts.messages), ("signal_start", starts.signals)]
    return [
        {"id": new_id(), "definition_id": definition_id, "element_id": element_id, "message_name": name, "kind": kind}
        for kind, names in named
        for element_id, name in names.items()
    ]


def timers_of(
    conn: Connection,
    definition_id: UUID,
    definition: ProcessDefinition,
    starts: Starts,
    taken_over: UUID | None,
    pending: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The `start_timer` jobs of a version: what is the same in the version `taken_over` goes on where that had come to (`pending`)."""
    rows = []
    for element_id, timer in _events(definition, "timer").items():
        first = starts.timers[element_id]
        if taken_over is not None and _same_timer(conn, taken_over, element_id, timer):
            mine = [p for p in pending if p["definition_id"] == str(taken_over) and p["element_id"] == element_id]
            rows += [_timer(definition_id, element_id, p["due_at"], None, p["payload"]) for p in mine]
        elif first is not None:
            begun = {**first.payload, SCHEDULE: str(schedule_of(definition_id, element_id, {}))}
            rows.append(_timer(definition_id, element_id, first.at, first.in_seconds, begun))
    return rows


def _same_timer(conn: Connection, definition_id: UUID, element_id: str, timer: TimerConfig) -> bool:
    try:
        node = compiled(conn, definition_id).nodes.get(element_id)
    except DefinitionRefused:
        return False  # stored under older rules, which have left no start timer that we could go on with
    before: TimerConfig | None = getattr(node.config, "timer", None) if node is not None else None
    return before is not None and (before.type, before.expression.text, before.zone) == (timer.type, timer.expression.text, timer.zone)


def _timer(definition_id: UUID, element_id: str, due_at: Any, in_seconds: float | None, payload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": new_id(),
        "definition_id": definition_id,
        "element_id": element_id,
        "due_at": due_at,
        "in_seconds": in_seconds,
        "payload": dict(payload),
    }


# Members for the statement of whoever has taken the versions FOR UPDATE, reading from a member {of} with tenant_id and at.
# `replaced`: the versions whose start events end; a signal's delivery is already on its way, and goes on.
END_STARTS = """unsubscribed AS (
  DELETE FROM subscription s USING {of} WHERE s.definition_id = ANY (%(replaced)s) AND s.kind IN ('start', 'signal_start')
), unscheduled AS (
  DELETE FROM job j USING {of} WHERE j.definition_id = ANY (%(replaced)s) AND j.instance_id IS NULL
    AND j.kind IN ('start_timer', 'message')
), let_go AS (
  UPDATE job j SET held = array_remove(j.held, 'suspended'), definition_id = NULL, available_at = {of}.at
  FROM {of} WHERE j.definition_id = ANY (%(replaced)s) AND j.instance_id IS NULL AND j.kind = 'throw'
)"""
WRITE_STARTS = """subscribed AS (
  INSERT INTO subscription (id, tenant_id, kind, message_name, definition_id, element_id, created_at)
  SELECT u.id, d.tenant_id, u.kind, u.message_name, u.definition_id, u.element_id, d.at
  FROM {of} d, jsonb_populate_recordset(NULL::subscription, %(subscriptions)s::jsonb) u
), scheduled AS (
  INSERT INTO job (id, tenant_id, kind, definition_id, element_id, due_at, available_at, held, payload, created_at)
  SELECT u.id, d.tenant_id, 'start_timer', u.definition_id, u.element_id, w.due, greatest(w.due, d.at),
    ARRAY(SELECT 'suspended' FROM process_definition v WHERE v.id = u.definition_id AND v.status = 'suspended'), u.payload, d.at
  FROM {of} d, jsonb_to_recordset(%(timers)s::jsonb)
    AS u (id uuid, definition_id uuid, element_id text, due_at timestamptz, in_seconds float8, payload jsonb),
    LATERAL (SELECT coalesce(u.due_at, d.at + make_interval(secs => u.in_seconds)) AS due) w
)"""
