"""What must be true after any fault: joins what the driver was answered, what the receiver saw, and the rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg

from tests.faults.load import PARALLEL, Driver, Receiver

Connection = psycopg.Connection[Any]
TABLES = ("job", "external_task", "delivery")


def problems(conn: Connection, driver: Driver, receiver: Receiver) -> list[str]:
    """Everything that is wrong, one sentence each."""
    found = list(driver.trouble)
    found += _lost(conn, driver)
    found += _twice(conn)
    found += _effects(conn, driver, receiver)
    found += _left_over(conn)
    (deadlocks,) = conn.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone() or (0,)
    if deadlocks:
        found.append(f"the database counted {deadlocks} deadlocks (40P01)")
    return found


def _lost(conn: Connection, driver: Driver) -> list[str]:
    """Every answer that the driver got is true, and nothing was started besides."""
    rows = conn.execute("SELECT business_key, id, status FROM process_instance").fetchall()
    found = [f"{case} was started {many} times" for case, many in Counter(case for case, _, _ in rows).items() if many > 1]
    there = {case: (key, status) for case, key, status in rows}
    for case, instance in driver.started.items():
        if case not in there:
            found.append(f"{case}: its start was answered, and there is no instance")
        elif there[case] != (instance, "completed"):
            found.append(f"{case}: expected instance {instance} completed, found {there[case]}")
    found += [f"{case}: an instance that nobody was told of" for case in there if case not in driver.started]
    tasks = dict(conn.execute("SELECT id, status FROM user_task").fetchall())
    found += [
        f"task {task}: its completion was answered, found {tasks.get(task)}" for task in driver.completed if tasks.get(task) != "completed"
    ]
    return found


def _twice(conn: Connection) -> list[str]:
    """Each transition happened once: per element, per item, per lease."""
    found = []
    elements = conn.execute(
        "SELECT instance_id, element_id, kind, count(*) FROM history WHERE kind IN ('element_entered', 'element_left', 'flow_taken',"
        " 'task_created', 'task_completed', 'timer_fired', 'join_passed', 'instance_started', 'instance_completed')"
        " GROUP BY 1, 2, 3, data->>'flow_id' HAVING count(*) > 1"
    ).fetchall()
    # A join is entered once by each of its flows.
    found += [
        f"instance {instance}: {kind} {element} {many} times"
        for instance, element, kind, many in elements
        if not (element == "join" and many <= len(PARALLEL)) and not (element == "fork" and kind == "flow_taken" and many <= len(PARALLEL))
    ]
    items = conn.execute(
        "SELECT item_id, kind, count(*) FROM history WHERE kind IN ('job_completed', 'timer_fired', 'delivery_completed', 'job_created',"
        " 'delivery_created') AND item_id IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 1"
    ).fetchall()
    found += [f"item {item}: {kind} {many} times" for item, kind, many in items]
    leases = conn.execute(
        "SELECT item_id, data->>'lease_number', count(*), array_agg(kind) FROM history WHERE data ? 'lease_number' AND kind IN"
        " ('job_completed', 'job_failed', 'job_recovered', 'job_released', 'timer_fired', 'delivery_completed', 'delivery_failed',"
        " 'delivery_recovered', 'delivery_released') GROUP BY 1, 2 HAVING count(*) > 1"
    ).fetchall()
    found += [f"item {item}: lease {number} ended {many} times: {kinds}" for item, number, many, kinds in leases]
    return found


def _effects(conn: Connection, driver: Driver, receiver: Receiver) -> list[str]:
    """Each effect happened at least once, and always under the one id of its item (R7)."""
    keys: dict[str, set[str]] = {}
    for key, path in receiver.effects():
        keys.setdefault(path, set()).add(key)
    found = []
    for case in driver.started:
        for path in (f"/reserve/{case}", f"/notify/{case}"):
            seen = keys.pop(path, set())
            if len(seen) != 1:
                found.append(f"{path}: expected one idempotency key, found {sorted(seen)}")
    found += [f"{path}: an effect of a case that was never started" for path in keys]
    completed = {str(item) for (item,) in conn.execute("SELECT item_id FROM history WHERE kind IN ('job_completed', 'delivery_completed')")}
    unknown = {key for key, _ in receiver.effects()} - completed
    found += [f"key {key}: the receiver saw it, and no item completed under it" for key in unknown]
    return found


def _left_over(conn: Connection) -> list[str]:
    """Nothing is leased, waiting or broken at the end."""
    found = []
    for table in TABLES:
        rows = conn.execute(f"SELECT status, count(*) FROM {table} WHERE status NOT IN ('completed') GROUP BY 1").fetchall()
        found += [f"{many} rows of {table} are left {status}" for status, many in rows]
    for table in ("token", "scope", "variable", "subscription", "incident"):
        (many,) = conn.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,)
        if many:
            found.append(f"{many} rows of {table} are left")
    return found


def recovered(conn: Connection) -> int:
    """How many leases were taken back: a fault test in which none was has tested nothing."""
    row = conn.execute("SELECT count(*) FROM history WHERE kind IN ('job_recovered', 'delivery_recovered')").fetchone()
    return int(row[0]) if row else 0
