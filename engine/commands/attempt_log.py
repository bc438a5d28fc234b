"""What attempts report while they run: how far they are, what they do, and log lines.

A report moves nothing and locks no case: it is written beside the item, under the number of the lease that it ran under, and stays when
the item is gone. It is bounded: the first MOST_LINES of an attempt are kept, the others are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from psycopg import errors

from engine.commands.external_tasks import is_known, lease_was_lost
from engine.commands.may import may
from engine.commands.outcome import Actor, FieldProblem, Lease, Refusal, Rejected, Reported
from engine.commands.requests import WRITE_REQUEST, encode, is_repeat, recorded, request_for
from engine.commands.transaction import Connection, command
from engine.frozen import dataclass
from engine.reports import LEVELS, LONGEST_DOING, LONGEST_LINE, MOST_LINES


@dataclass(frozen=True, slots=True)
class Line:
    """`age_seconds`: how long ago it was said, by the clock of whoever says it."""

    text: str
    level: str = "info"
    age_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """What one attempt has to say since its last report. `progress`: 0 to 1; None leaves it, and `doing`, as they were.

    `more`: lines that were said and are not in `lines`.
    """

    item_id: UUID
    lease_number: int
    tenant_id: str = ""
    progress: float | None = None
    doing: str = ""
    lines: Sequence[Line] = ()
    more: int = 0


@command
def keep_reports(conn: Connection, reports: Sequence[Report]) -> None:
    """Write what the attempts of a worker say. A second time it is written a second time: a report is no transition.

    Locks: no case and no item. Refuses: nothing.
    """
    conn.execute(
        _KEEP.format(said=_SAID.format(of_leased="")),
        {"reports": orjson.dumps([_row(report) for report in reports]).decode(), "most": MOST_LINES},
    )


@command
def report_attempt(
    conn: Connection,
    task_id: UUID,
    *,
    actor: Actor,
    lease_number: int,
    progress: float | None = None,
    doing: str = "",
    lines: Sequence[Line] = (),
    request_id: str | None = None,
) -> Reported | Rejected:
    """What a client says of the external task that it has leased.

    Locks: no case and no item. Refuses: NOT_ALLOWED, INVALID, NOT_FOUND, LEASE_LOST.
    """
    if not may(actor, "work", "external_task"):
        return Rejected(Refusal.NOT_ALLOWED)
    problems = _problems(progress, doing, lines)
    if problems:
        return Rejected(Refusal.INVALID, "; ".join(f"{p.field}: {p.message}" for p in problems), problems=problems, item_id=task_id)
    request = request_for(actor, request_id, "report_attempt", task_id, [lease_number, progress, doing, [_line(line) for line in lines]])
    report = Report(task_id, lease_number, actor.tenant_id, progress, doing, lines)
    done = Reported(task_id, len(lines))
    values: dict[str, Any] = {"reports": orjson.dumps([_row(report)]).decode(), "most": MOST_LINES}
    said = _SAID.format(of_leased=_OF_LEASED)
    if request is not None:
        said += f", asked AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='said')})"
        values.update(request.params(), outcome=encode(done))
    try:
        row = conn.execute(_KEEP.format(said=said), values).fetchone()
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        answer: Any = recorded(conn, request)
        return answer  # type: ignore[no-any-return]
    if row is not None and row[0]:
        return done
    if not is_known(conn, task_id, actor):
        return Rejected(Refusal.NOT_FOUND)
    return lease_was_lost(conn, "report_attempt", Lease("external_task", task_id, lease_number, ""), actor)


def _problems(progress: float | None, doing: str, lines: Sequence[Line]) -> tuple[FieldProblem, ...]:
    found = []
    if progress is not None and not 0 <= progress <= 1:
        found.append(FieldProblem("progress", f"expected 0 to 1, found {progress:g}"))
    if progress is None and doing:
        found.append(FieldProblem("progress", "expected 0 to 1 beside `doing`, found none"))
    if len(doing) > LONGEST_DOING:
        found.append(FieldProblem("doing", f"expected at most {LONGEST_DOING} characters, found {len(doing)}"))
    if progress is None and not lines:
        found.append(FieldProblem("lines", "expected a line or `progress`, found neither"))
    if len(lines) > MOST_LINES:
        found.append(FieldProblem("lines", f"expected at most {MOST_LINES}, found {len(lines)}"))
    for place, line in enumerate(lines[:MOST_LINES]):
        if line.level not in LEVELS:
            found.append(FieldProblem(f"lines[{place}].level", f"expected one of {', '.join(LEVELS)}, found {line.level!r}"))
        if not 0 < len(line.text) <= LONGEST_LINE:
            found.append(FieldProblem(f"lines[{place}].text", f"expected 1 to {LONGEST_LINE:,} characters, found {len(line.text):,}"))
    return tuple(found)


def _row(report: Report) -> dict[str, Any]:
    return {
        "item": str(report.item_id),
        "number": report.lease_number,
        "tenant": report.tenant_id,
        "progress": report.progress,
        "doing": report.doing,
        "said": len(report.lines) + report.more,
        "lines": [_line(line) for line in report.lines],
    }


def _line(line: Line) -> dict[str, Any]:
    return {"text": line.text, "level": line.level, "age": line.age_seconds}


_SAID = """said AS MATERIALIZED (SELECT s.* FROM jsonb_to_recordset(%(reports)s::jsonb)
  AS s(item uuid, number bigint, tenant text, progress real, doing text, said int, lines jsonb){of_leased})"""
_OF_LEASED = """
  JOIN external_task e ON e.id = s.item AND e.tenant_id = s.tenant AND e.status COLLATE "C" = 'leased' AND e.lease_number = s.number"""
# The row of the attempt is changed where it is (ON CONFLICT), so `before` is what was said until then, whoever reports beside this.
_KEEP = """
WITH {said}, kept AS (
  INSERT INTO attempt_report AS r (item_id, lease_number, tenant_id, progress, doing, lines, reported_at)
  SELECT item, number, tenant, progress, doing, said, baton_clock() FROM said ORDER BY item, number
  ON CONFLICT ON CONSTRAINT pk_attempt_report DO UPDATE SET
    progress = coalesce(excluded.progress, r.progress),
    doing = CASE WHEN excluded.progress IS NULL THEN r.doing ELSE excluded.doing END,
    lines = r.lines + excluded.lines, reported_at = excluded.reported_at
  RETURNING item_id, lease_number, lines
), written AS (
  INSERT INTO attempt_line (tenant_id, item_id, lease_number, at, level, text)
  SELECT s.tenant, s.item, s.number, baton_clock() - make_interval(secs => l.age), l.level, l.text
  FROM said s JOIN kept k ON k.item_id = s.item AND k.lease_number = s.number
  CROSS JOIN LATERAL ROWS FROM (jsonb_to_recordset(s.lines) AS (text text, level text, age float8))
    WITH ORDINALITY AS l(text, level, age, place)
  WHERE k.lines - s.said + l.place <= %(most)s
  ORDER BY s.item, s.number, l.place
  RETURNING 1
)
SELECT count(*) FROM said
"""
