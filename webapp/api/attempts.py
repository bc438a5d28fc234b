"""What attempts say while they run: a client reports, operators read it of any job or external task."""

from __future__ import annotations

from typing import Any, Literal, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify

from engine.commands.attempt_log import Line, report_attempt
from engine.commands.outcome import Refusal, Rejected
from engine.queries.attempts import Attempt, attempts
from engine.queries.instance import item_history
from engine.queries.rows import reading
from engine.queries.work import work_items
from engine.reports import LEVELS, LONGEST_DOING, LONGEST_LINE, MOST_LINES
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, Wrong, accepting, kind_of, number, one_of, request_id, text
from webapp.api.describing import Sent, operation
from webapp.api.external_tasks import NUMBER
from webapp.api.schemas import Items, Moment
from webapp.api.shapes import each, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader


class ReportedShape(TypedDict):
    """`lines`: how many lines this report added; the first 200 of an attempt are kept."""

    id: UUID
    status: Literal["leased"]
    lines: int


class AttemptLineShape(TypedDict):
    at: Moment
    level: Literal["debug", "info", "warning", "error"]
    text: str


class AttemptShape(TypedDict):
    """`attempt` counts those that were begun, `lease_number` every lease. `outcome` is null where the end is not known."""

    lease_number: int
    attempt: int | None
    owner: str | None
    began_at: Moment | None
    ended_at: Moment | None
    outcome: Literal["running", "completed", "failed", "recovered", "released", "cancelled"] | None
    error: str | None
    progress: float | None
    doing: str
    lines: list[AttemptLineShape]
    lines_not_kept: int


_SAID = text(longest=LONGEST_LINE)
_LEVEL = one_of(*LEVELS)


@accepting(
    {
        "type": "array",
        "maxItems": MOST_LINES,
        "items": {
            "type": "object",
            "properties": {"text": _SAID.schema, "level": _LEVEL.schema},
            "required": ["text"],
            "additionalProperties": False,
        },
    }
)
def said_lines(value: Any) -> list[Line]:
    if not isinstance(value, list):
        raise Wrong(f"expected a list, found {kind_of(value)}")
    if len(value) > MOST_LINES:
        raise Wrong(f"expected at most {MOST_LINES} lines, found {len(value)}")
    lines = []
    for place, given in enumerate(value, 1):
        if not isinstance(given, dict) or not {"text"} <= set(given) <= {"text", "level"}:
            raise Wrong(f'line {place}: expected an object of "text" and, if need be, "level"')
        try:
            lines.append(Line(_SAID(given["text"]), _LEVEL(given.get("level", "info"))))
        except Wrong as wrong:
            raise Wrong(f"line {place}: {wrong}") from None
    return lines


@blueprint.post("/external-tasks/<uuid:task_id>/report")
@operation(
    scope="external_tasks",
    body={
        "lease_number": NUMBER,
        "progress": Field(
            number(most=1, nullable=True), None, about="How far the attempt is, from 0 to 1. The latest counts.", example=0.5
        ),
        "doing": Field(text(longest=LONGEST_DOING, empty=True), "", about="What it does now; beside `progress`.", example="page 5 of 10"),
        "lines": Field(said_lines, [], about="What goes into its log.", example=[{"text": "Paper is short.", "level": "warning"}]),
    },
    answers=ReportedShape,
    refusals=(Refusal.LEASE_LOST,),
)
def report_external(task_id: UUID, sent: Sent) -> Response:
    """Report how far an attempt is, and what it has to say.

    Neither moves the task. The first 200 lines of an attempt are kept for 30 days, further ones are counted.
    """
    outcome = report_attempt(command_connection(), task_id, actor=current_actor(), request_id=request_id(), **sent)
    if isinstance(outcome, Rejected):
        return refused(outcome)
    return jsonify(id=outcome.item_id, status="leased", lines=outcome.lines)


@blueprint.get("/jobs/<uuid:item_id>/attempts")
@operation(scope="read", needs=("see", "job"), answers=Items[AttemptShape])
def item_attempts(item_id: UUID) -> Response:
    """The last 20 attempts of a job or external task, newest first, with what they said.

    Also of one that has ended, as long as its history is kept.
    """
    tenant = current_actor().tenant_id
    with reading(reader()) as conn:
        found = attempts(conn, item_id, tenant_id=tenant)
        known = found or item_history(conn, item_id, tenant_id=tenant, limit=1) or work_items(conn, tenant_id=tenant, item_id=item_id).items
    if not known:
        abort(404)
    return jsonify(items=each(found, attempt_shape))


def attempt_shape(attempt: Attempt) -> dict[str, Any]:
    return {
        "lease_number": attempt.number,
        "attempt": attempt.attempt,
        "owner": attempt.owner,
        "began_at": moment(attempt.began_at),
        "ended_at": moment(attempt.ended_at),
        "outcome": attempt.outcome or None,
        "error": attempt.error,
        "progress": attempt.progress,
        "doing": attempt.doing,
        "lines": [{"at": moment(line.at), "level": line.level, "text": line.text} for line in attempt.lines],
        "lines_not_kept": attempt.not_kept,
    }
