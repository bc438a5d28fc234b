"""What the server does for one statement: its indexes, its sequential scans, its buffers. Executes and rolls back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg


@dataclass(frozen=True, slots=True)
class Plan:
    """`buffers`: shared blocks hit and read, those of the planner left out; `indexes` and `seq_scans` in plan order."""

    name: str
    buffers: int
    rows: int
    milliseconds: float
    indexes: tuple[str, ...]
    seq_scans: tuple[str, ...]


def explain(conn: psycopg.Connection[Any], name: str, sql: str, params: Mapping[str, Any], *, settings: str = "SELECT 1") -> Plan:
    """EXPLAIN (ANALYZE, BUFFERS) in a transaction that is rolled back. `conn`: idle, in autocommit; `settings`: what its reader sets."""
    conn.execute("BEGIN")
    try:
        conn.execute(settings)
        found = conn.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", params).fetchone()
    finally:
        conn.execute("ROLLBACK")
    assert found is not None, "EXPLAIN gives one row"
    document = json.loads(found[0]) if isinstance(found[0], str) else found[0]
    top = document[0]["Plan"]
    nodes = list(_nodes(top))
    return Plan(
        name,
        top.get("Shared Hit Blocks", 0) + top.get("Shared Read Blocks", 0),
        top["Actual Rows"],
        document[0]["Execution Time"],
        tuple(dict.fromkeys(node["Index Name"] for node in nodes if "Index Name" in node)),
        tuple(dict.fromkeys(node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan")),
    )


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
