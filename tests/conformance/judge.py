"""From what happened to lines, and from lines to a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from typing import Any

import psycopg

from tests.conformance.cases import CONSTRAINTS, Case, Run
from tests.conformance.rewriting import TAKES_TIME

DEPLOYMENT, RUNTIME, THROWN, ANY_ERROR = "ERROR_deployment", "ERROR_runtime", "ERROR_thrownErrorEvent", "ERROR"


@dataclass(frozen=True, slots=True)
class Done:
    """One script that ran, by the ledger that scripts write."""

    job: str
    element: str
    token: str
    line: str | None
    begun: datetime
    ended: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """What a run left behind. `completed`: the script jobs of the history, job -> element; `incidents`: their kinds."""

    deployed: bool
    refusals: tuple[Mapping[str, Any], ...] = ()  # problems of the deployment
    failed_starts: tuple[str, ...] = ()
    started: bool = False  # by the history
    ledger: tuple[Done, ...] = ()
    completed: Mapping[str, str] = field(default_factory=dict)
    incidents: tuple[tuple[str, str], ...] = ()  # (kind, message)


@dataclass(frozen=True, slots=True)
class Verdict:
    word: str  # passed | failed | contested
    expected: tuple[str, ...]
    found: tuple[str, ...]
    problems: tuple[Mapping[str, Any] | str, ...]


def facts_of(conn: psycopg.Connection[Any], tenant: str) -> Facts:
    """What the case of this tenant did so far, from the history, the incidents and the ledger."""
    asked = {"tenant": tenant}
    ledger = conn.execute(
        "SELECT job_id::text, element_id, token, line, begun, ended FROM conformance.ledger WHERE tenant_id = %(tenant)s ORDER BY ended",
        asked,
    ).fetchall()
    completed = conn.execute(
        "SELECT DISTINCT h.item_id::text, s.element_id FROM history h"
        " JOIN conformance.script s ON s.element_id = CASE h.kind WHEN 'error_caught' THEN h.data->>'thrown_by' ELSE h.element_id END"
        " WHERE h.tenant_id = %(tenant)s AND h.item_id IS NOT NULL"
        " AND EXISTS (SELECT FROM history c WHERE c.item_id = h.item_id AND c.kind = 'job_created' AND c.data->>'kind' = 'service')"
        " AND (h.kind IN ('job_completed', 'error_caught') OR h.kind = 'job_failed' AND s.token = 'THROW_ERROR')",
        asked,
    ).fetchall()
    incidents = conn.execute(
        "SELECT CASE WHEN job_id IS NULL THEN kind ELSE 'job_' || kind END, message FROM incident"
        " WHERE tenant_id = %(tenant)s ORDER BY created_at",
        asked,
    ).fetchall()
    row = conn.execute("SELECT EXISTS (SELECT FROM history WHERE tenant_id = %(tenant)s AND kind = 'instance_started')", asked).fetchone()
    assert row is not None
    return Facts(
        deployed=True,
        started=row[0],
        ledger=tuple(Done(*each) for each in ledger),
        completed=dict(completed),
        incidents=tuple(incidents),
    )


def judge(case: Case, run: Run, facts: Facts) -> Verdict:
    found = tuple(sorted(_found(run, facts)))
    problems: list[Mapping[str, Any] | str] = [*facts.refusals, *facts.failed_starts]
    problems += [f"incident {kind}: {message}" for kind, message in facts.incidents]
    disagreement = _disagreement(facts)
    good = Counter(found) == Counter(run.expected) and not disagreement
    if case.group == CONSTRAINTS and good and not any(isinstance(each, Mapping) and each.get("element") for each in facts.refusals):
        disagreement.append("no problem names an element")
        good = False
    if facts.deployed and run.start and not facts.started and not facts.failed_starts:
        disagreement.append("the history knows of no started instance")
        good = False
    problems += disagreement
    word = "contested" if case.contested else "passed" if good else "failed"
    return Verdict(word, run.expected, found, tuple(problems))


def _found(run: Run, facts: Facts) -> Iterable[str]:
    lines = [done.line for done in facts.ledger if done.line is not None]
    yield from (line for line in lines if line != "MARKER_exists")
    if "MARKER_exists" in run.expected and "MARKER_exists" in lines:
        yield "MARKER_exists"  # it is a file: once, however often it was written
    if _overlapped(facts.ledger):
        yield "EXECUTION_parallel"
    errors = set(_errors(facts))
    yield from [ANY_ERROR] if errors and ANY_ERROR in run.expected else errors


def _errors(facts: Facts) -> Iterable[str]:
    if not facts.deployed:
        yield DEPLOYMENT
    if facts.failed_starts or any(kind != "uncaught_error" for kind, _ in facts.incidents):
        yield RUNTIME
    if any(kind == "uncaught_error" for kind, _ in facts.incidents):
        yield THROWN


def _overlapped(ledger: Sequence[Done]) -> bool:
    spans = [done for done in ledger if done.token.startswith("CREATE_TIMESTAMP_LOG")]
    return any(a.begun < b.ended and b.begun < a.ended for a, b in combinations(spans, 2))


def _disagreement(facts: Facts) -> list[str]:
    """The history of completed script jobs and the scripts' own ledger must tell of the same jobs.

    A script that takes time and was cut off by an interruption may have come to its end just before it noticed.
    """
    ran = {done.job: done.element for done in facts.ledger if done.token not in TAKES_TIME or done.job in facts.completed}
    only_history = sorted(set(facts.completed.items()) - set(ran.items()))
    only_scripts = sorted(set(ran.items()) - set(facts.completed.items()))
    told = [f"the history completed job {job} of {element}, and no script wrote so" for job, element in only_history]
    return told + [f"job {job} of {element} ran, and the history did not complete it" for job, element in only_scripts]
