"""Joins three sources that know nothing of one another: what the driver sent and was answered (the journal), what the
receivers saw, and the rows. Everything that is wrong becomes a Violation with the ids that it is about.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from tests.faults.storm.journal import Ask

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Violation:
    """`rule`: which of the promises; `what`: one sentence; `ids`: whom it concerns."""

    rule: str
    what: str
    ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}" + (f" [{', '.join(self.ids)}]" if self.ids else "")


@dataclass(slots=True)
class Rows:
    """What the tables hold in the end."""

    instances: dict[str, Row]  # by id; with `process`, the key of its definition
    history: list[Row]
    tasks: dict[str, Row]
    deliveries: dict[str, Row]
    messages: dict[str, Row]
    left: dict[str, int]  # table -> rows that no ended case may leave behind
    of_item: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    of_instance: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for event in self.history:
            self.of_item[event["item_id"]].append(event)
            self.of_instance[event["instance_id"]].append(event)

    def named(self, business_key: str) -> list[Row]:
        return [row for row in self.instances.values() if row["business_key"] == business_key]


@dataclass(frozen=True, slots=True)
class Evidence:
    """`effects`: (idempotency key, path) as the receivers and the handlers wrote them; `logs`: of the servers; `said`: by process."""

    asks: Sequence[Ask]
    effects: Sequence[tuple[str, str]]
    rows: Rows
    orphans: Sequence[Violation] = ()
    too_long: Mapping[str, float] = field(default_factory=dict)
    notified: Sequence[str] = ()
    logs: str = ""
    said: Mapping[str, str] = field(default_factory=dict)
    trouble: Sequence[str] = ()


def violations(evidence: Evidence) -> list[Violation]:
    """Everything that must not be."""
    from tests.faults.storm import check_answers, check_effects, check_rows

    found = [
        *check_answers.check(evidence.asks, evidence.rows),
        *check_effects.check(evidence.effects, evidence.rows),
        *check_rows.check(evidence.rows),
        *evidence.orphans,
        *_time_and_logs(evidence),
    ]
    return list(dict.fromkeys(found))


def _time_and_logs(evidence: Evidence) -> Iterator[Violation]:
    for lease, seconds in evidence.too_long.items():
        yield Violation("lease", f"leased for {seconds:g} s past its expiry while a worker lived", (lease,))
    for query in evidence.notified:
        yield Violation("notify", f"a statement of the engine notifies: {query[:200]}")
    deadlocks = re.findall(r"^.*\b40P01\b.*$", evidence.logs, re.MULTILINE)
    if deadlocks:
        yield Violation("deadlock", f"{len(deadlocks)} lines with 40P01 in the servers' logs, the first: {deadlocks[0][:300]}")
    for name, text in evidence.said.items():
        if "Traceback (most recent call last)" in text:
            yield Violation("exception", f"{name} logged {text.count('Traceback (most recent call last)')} unexpected exceptions")
    for text in evidence.trouble:
        yield Violation("driver", text)


# ---- reading the rows

LEFT = {
    "token": "SELECT count(*) FROM token",
    "scope": "SELECT count(*) FROM scope",
    "variable": "SELECT count(*) FROM variable",
    "job": "SELECT count(*) FROM job",
    "external_task": "SELECT count(*) FROM external_task",
    "subscription": "SELECT count(*) FROM subscription WHERE kind <> 'start'",
    "incident": "SELECT count(*) FROM incident",
    "inbox_entry": "SELECT count(*) FROM inbox_entry",
    "completed_execution": "SELECT count(*) FROM completed_execution",
}
# Rows that belong to nothing, or to what has ended: also when other cases are still under way.
_ENDED = "JOIN process_instance i ON i.id = x.instance_id WHERE i.status <> 'running'"
ORPHANS = {
    "a token without its instance": "SELECT x.id FROM token x WHERE NOT EXISTS (SELECT FROM process_instance i WHERE i.id = x.instance_id)",
    "a token of an instance that has ended": f"SELECT x.id FROM token x {_ENDED}",
    "a scope of an instance that has ended": f"SELECT x.id FROM scope x {_ENDED}",
    "a job of an instance that has ended": f"SELECT x.id FROM job x {_ENDED}",
    "an external task of an instance that has ended": f"SELECT x.id FROM external_task x {_ENDED}",
    "a subscription of an instance that has ended": f"SELECT x.id FROM subscription x {_ENDED}",
    "an open task of an instance that has ended": f"SELECT x.id FROM user_task x {_ENDED} AND x.status IN ('open', 'claimed')",
    "a job without its token": (
        "SELECT j.id FROM job j WHERE j.instance_id IS NOT NULL AND j.kind IN ('service', 'timer')"
        " AND NOT EXISTS (SELECT FROM token t WHERE t.id = j.token_id)"
    ),
    "a job for a subscription that is gone": (
        "SELECT j.id FROM job j WHERE j.kind = 'message' AND NOT EXISTS (SELECT FROM subscription s WHERE s.id = j.subscription_id)"
        " AND j.created_at < baton_now() - interval '20 seconds'"
    ),
    "an inbox entry of a task that is not open": (
        "SELECT e.task_id FROM inbox_entry e JOIN user_task t ON t.id = e.task_id WHERE t.status NOT IN ('open', 'claimed')"
    ),
    "a called instance that runs under one that has ended": (
        "SELECT c.id FROM process_instance c JOIN process_instance p ON p.id = c.parent_id"
        " WHERE c.status = 'running' AND p.status <> 'running'"
    ),
    "a running instance without any token": (
        "SELECT i.id FROM process_instance i WHERE i.status = 'running' AND NOT EXISTS (SELECT FROM token t WHERE t.instance_id = i.id)"
    ),
    "an incident beside work that has not failed": " UNION ALL ".join(
        f"SELECT n.id FROM incident n JOIN {table} j ON j.id = n.{table}_id WHERE j.status <> 'failed'"
        for table in ("job", "external_task", "delivery")
    ),
}


def read_rows(conn: psycopg.Connection[Any]) -> Rows:
    """All of it, ids as texts."""

    def every(query: str) -> list[Row]:
        cursor = conn.execute(query)
        names = [column.name for column in cursor.description or ()]
        return [{name: str(value) if isinstance(value, UUID) else value for name, value in zip(names, row, strict=True)} for row in cursor]

    instances = every(
        "SELECT i.id, i.root_id, i.parent_id, i.business_key, i.status, i.final_variables, d.key AS process"
        " FROM process_instance i JOIN process_definition d ON d.id = i.definition_id ORDER BY i.started_at"
    )
    return Rows(
        {row["id"]: row for row in instances},
        every("SELECT id, at, instance_id, kind, element_id, actor, item_id, data FROM history ORDER BY id"),
        {row["id"]: row for row in every("SELECT id, instance_id, element_id, status, assignee, ended_by FROM user_task")},
        {row["id"]: row for row in every("SELECT id, instance_id, status, destination, lease_number, attempts FROM delivery")},
        {row["id"]: row for row in every("SELECT id, name, correlation_key FROM message")},
        {table: every(query)[0]["count"] for table, query in LEFT.items()},
    )


def orphans(conn: psycopg.Connection[Any]) -> list[Violation]:
    found = []
    for what, query in ORPHANS.items():
        ids = tuple(str(key) for (key,) in conn.execute(query))
        if ids:
            found.append(Violation("orphan", f"{what}: {len(ids)}", ids[:5]))
    return found
