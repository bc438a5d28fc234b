"""The CHECKs admit the rows that the rules admit, and no others: every combination is tried."""

from __future__ import annotations

import itertools

import psycopg
import pytest
from psycopg import errors

from engine.core import lifecycle
from engine.core.values import TYPES

NEW = {
    "process_instance": "(id, root_id, definition_id, started_by) VALUES (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'ada')",
    "user_task": "(id, instance_id, root_id, definition_id, element_id, name, sort_key)"
    " VALUES (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'a', 'A', 'a')",
    "job": "(id, kind, element_id, due_at, available_at) VALUES (gen_random_uuid(), 'throw', 'a', baton_clock(), baton_clock())",
    "scope": "(id, instance_id, path) VALUES (gen_random_uuid(), (SELECT id FROM process_instance), '{}')",
    "variable": "(scope_id, name, type, value) VALUES ((SELECT id FROM scope), 'a', 'null', 'null')",
    "delivery": "(id, kind, destination, due_at, available_at, request)"
    " VALUES (gen_random_uuid(), 'http', 'http://a', baton_clock(), baton_clock(), '{}')",
}
FINAL = {"completed", "cancelled", "skipped"}
LEASE = ("lease_owner", "lease_expires_at", "leased_at")


def admitted(db: psycopg.Connection, table: str, **values: object) -> bool:
    changes = ", ".join(f"{name} = %({name})s" for name in values)
    try:
        with db.transaction():
            db.execute(f"UPDATE {table} SET {changes}", values)
    except errors.CheckViolation:
        return False
    return True


def statuses(table: str) -> list[str]:
    return [*lifecycle.MAPS[table], "unheard_of"]


@pytest.mark.parametrize("table", ["process_instance", "user_task"])
def test_a_status_is_final_if_and_only_if_it_has_ended_and_claimed_if_and_only_if_somebody_has_it(
    db: psycopg.Connection, table: str
) -> None:
    db.execute(f"INSERT INTO {table} {NEW[table]}")
    assignees = (None, "ada") if table == "user_task" else (None,)
    for status, ended, assignee in itertools.product(statuses(table), (None, "2026-11-30"), assignees):
        known = status in lifecycle.MAPS[table] and (status in FINAL) == (ended is not None)
        held = {"open": assignee is None, "claimed": assignee is not None}.get(status, True)
        values = {"status": status, "ended_at": ended, **({"assignee": assignee} if table == "user_task" else {})}
        assert admitted(db, table, **values) == (known and held), values


@pytest.mark.parametrize("table", ["job", "delivery"])
def test_R1_work_is_leased_if_and_only_if_all_lease_columns_are_set(db: psycopg.Connection, table: str) -> None:
    db.execute(f"INSERT INTO {table} {NEW[table]}")
    for status, ended, *lease in itertools.product(statuses(table), (None, "2026-11-30"), *[(None, "2026-11-30")] * 3):
        known = status in lifecycle.MAPS[table] and (status in FINAL) == (ended is not None)
        whole = all(lease) if status == "leased" else not any(lease)
        values = {"status": status, "ended_at": ended, **dict(zip(LEASE, lease, strict=True))}
        assert admitted(db, table, **values) == (known and whole), values


@pytest.mark.parametrize(
    ("column", "within", "beyond"), [("priority", (0, 9), (-1, 10)), ("level", (0, 10), (-1, 11)), ("attempts", (0, 3), (-1, 4))]
)
@pytest.mark.parametrize("table", ["job", "delivery"])
def test_R1_numbers_stay_within_their_bounds(
    db: psycopg.Connection, table: str, column: str, within: tuple[int, ...], beyond: tuple[int, ...]
) -> None:
    db.execute(f"INSERT INTO {table} {NEW[table]}")
    assert all(admitted(db, table, max_attempts=3, **{column: value}) for value in within)
    assert not any(admitted(db, table, max_attempts=3, **{column: value}) for value in beyond)


def test_a_job_hangs_from_what_its_kind_says(db: psycopg.Connection) -> None:
    db.execute(f"INSERT INTO job {NEW['job']}")
    kinds = {"service", "timer", "start_timer", "message", "cancel", "continue", "throw", "signal", "hold"}
    needs_no_case, needs_no_version = {"message", "throw", "signal", "hold"}, {"throw", "hold"}
    some = "01a22da6-edcf-73b8-abf2-2a7a4810b8af"
    for kind, version, case in itertools.product(sorted(kinds | {"unheard_of"}), (None, some), (None, some)):
        hangs = (kind == "start_timer") == (case is None) or kind in needs_no_case
        fits = kind in kinds and hangs and (version is not None or kind in needs_no_version)
        values = {"kind": kind, "definition_id": version, "instance_id": case}
        assert admitted(db, "job", **values) == fits, values


def test_a_variable_has_a_type_that_there_is(db: psycopg.Connection) -> None:
    for table in ("process_instance", "scope", "variable"):
        db.execute(f"INSERT INTO {table} {NEW[table]}")
    assert all(admitted(db, "variable", type=each) for each in TYPES)
    assert not admitted(db, "variable", type="unheard_of")
