"""A guard finds its row by primary key, whatever statistics say: on a new database they say that every index is small.

Otherwise a lock would read a partial index on the status from end to end, all that was consumed since the last vacuum
included, until the plan is made anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest

from engine.commands import deliveries, external_tasks, failure, leases, tasks
from engine.db import load, outbox, straight
from engine.db.acquire import WORK, acquire_sql
from engine.db.locks import END_DELIVERY, LEAF
from engine.db.mix import Mix
from engine.db.session import connect
from engine.db.statements import writing_statements
from tests.databases import Databases

Connection = psycopg.Connection[Any]
GUARDED = {
    **{leaf: writing_statements(Mix(leaf))[0] for leaf in LEAF if leaf != "instance"},
    **{start: writing_statements(Mix(start))[0] for start in ("start_by_job", "start_by_message", "start_by_throw")},
    "claim": tasks._CLAIM[0],
    "unclaim": tasks._UNCLAIM[0],
    "assign": tasks._ASSIGN[0],
    "delivered": deliveries._DELIVERED,
    "end of a delivery": END_DELIVERY,
    **{f"release of a {table}": text for table, text in leases._RELEASE.items()},
    **{f"failure of a {table}": text for table, text in failure._FAIL.items()},
}
BATCHES = {"job": load._BATCH, "external_task": external_tasks._BATCH, "delivery": outbox._REQUESTS}
DUE = {"job": "ix_job_due", "external_task": "ix_external_task_due", "delivery": "ix_delivery_route"}
GROUPED_BY = {"job": ("kind", "topic", "level"), "external_task": ("tenant_id", "topic", "level"), "delivery": ("kind", "route", "level")}
SENDING = "ix_delivery_sending"
HOT = ("process_instance", "user_task", "job", "external_task", "delivery", "subscription", "token")


@pytest.fixture(scope="module")
def new_db(databases: Databases) -> Iterator[Connection]:
    """Nobody has used it: what was emptied may have statistics of what it held."""
    url = databases.lend(new=True)
    with connect(url) as conn:
        yield conn
    databases.take_back(url)


@pytest.mark.parametrize("name", GUARDED)
def test_every_guard_finds_its_row_by_its_key_on_a_database_without_statistics(new_db: Connection, name: str) -> None:
    nodes = planned(new_db, GUARDED[name])
    used = {node["Index Name"] for node in nodes if node.get("Relation Name") in HOT and "Index Name" in node}
    assert used, "expected an index, found none"
    assert all(index.startswith("pk_") for index in used), f"{name}: expected primary keys, found {used}"


@pytest.mark.parametrize("table", BATCHES)
def test_a_batch_that_was_leased_is_read_by_its_keys_and_not_along_the_index_of_leases(new_db: Connection, table: str) -> None:
    nodes = [node for node in planned(new_db, BATCHES[table]) if node.get("Relation Name") == table]
    assert [node.get("Index Name") for node in nodes] == [f"pk_{table}"]


@pytest.mark.parametrize("kind", straight.READ)
def test_a_straight_read_goes_from_key_to_key_and_reads_no_table_from_end_to_end(new_db: Connection, kind: str) -> None:
    nodes = [node for node in planned(new_db, straight.READ[kind]) if "Relation Name" in node]
    assert {node["Index Name"] for node in nodes if node["Relation Name"] not in ("token", "variable")} == {
        f"pk_{kind}", "pk_scope", "pk_process_instance",
    }  # fmt: skip
    assert all("Index Cond" in node for node in nodes)


@pytest.mark.parametrize("table", WORK)
def test_acquisition_stops_in_the_order_of_its_index_and_goes_straight_to_the_rows(new_db: Connection, table: str) -> None:
    """Whatever is due: a bitmap or a sort would read all of it for the first ten."""
    nodes = list(planned(new_db, acquire_sql(WORK[table])))
    in_order = [node for node in nodes if node["Node Type"] == "Limit" and node["Plans"][0].get("Index Name") == DUE[table]]
    assert len(in_order) == 1, "expected the index on what is due straight below its LIMIT"
    [found] = in_order[0]["Plans"]
    assert all(f"{column} =" in found["Index Cond"] for column in GROUPED_BY[table]), f"expected one branch, found {found['Index Cond']}"
    assert [node["Node Type"] for node in nodes if node.get("Relation Name") == table and node.get("Index Name") != SENDING] == [
        "ModifyTable",
        "Index Scan",
        "Tid Scan",
        "Tid Scan",
    ]


def test_what_a_destination_is_being_sent_is_counted_along_an_index_of_its_own_up_to_what_it_takes(new_db: Connection) -> None:
    """Not along that of all leases, once for each destination."""
    nodes = list(planned(new_db, acquire_sql(WORK["delivery"])))
    counted = [node["Plans"][0] for node in nodes if node["Node Type"] == "Limit" and node["Plans"][0].get("Index Name") == SENDING]
    assert counted, "expected the index on what is being sent straight below its LIMIT"
    assert all("route >=" in node["Index Cond"] and "route <=" in node["Index Cond"] for node in counted)
    assert "ix_delivery_lease" not in {node.get("Index Name") for node in nodes}


def planned(conn: Connection, sql: str) -> Iterator[Mapping[str, Any]]:
    """The nodes of the generic plan, which is the one that workers run."""
    names: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        names.append(match[1]) if match[1] not in names else None
        return f"${names.index(match[1]) + 1}"

    text = re.sub(r"%\((\w+)\)s", numbered, sql).replace("%%", "%")
    with conn.transaction(force_rollback=True):
        conn.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        conn.execute(f"PREPARE guard AS {text}")
        row = conn.execute(f"EXPLAIN (FORMAT JSON) EXECUTE guard ({', '.join(['NULL'] * len(names))})").fetchone()
    conn.execute("DEALLOCATE guard")
    assert row is not None, "EXPLAIN gives one row"
    yield from _nodes(row[0][0]["Plan"] if not isinstance(row[0], str) else json.loads(row[0])[0]["Plan"])


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
