"""The tables of durable work as the server has them: made for rows that come, change a few times, and go."""

from __future__ import annotations

import psycopg
import pytest

from engine.db.acquire import WORK
from engine.db.session import COMMANDS, options

ALL = pytest.mark.parametrize("table", WORK)


@ALL
def test_F23_durable_work_lies_in_one_plain_table_whatever_its_status(db: psycopg.Connection, table: str) -> None:
    assert db.execute("SELECT relkind FROM pg_class WHERE oid = %s::regclass", (table,)).fetchone() == ("r",)


def test_F23_commands_run_in_read_committed(database_url: str) -> None:
    with psycopg.connect(database_url, options=options(COMMANDS)) as conn:
        conn.execute("SELECT 1")
        assert conn.execute("SHOW transaction_isolation").fetchone() == ("read committed",)


@ALL
def test_F30_F31_each_page_leaves_room_and_vacuum_comes_early_and_unhurried_by_a_delay(db: psycopg.Connection, table: str) -> None:
    found = db.execute("SELECT unnest(reloptions) FROM pg_class WHERE oid = %s::regclass", (table,)).fetchall()
    options = {name: float(value) for name, value in (row[0].split("=") for row in found)}
    assert options["fillfactor"] <= 90
    assert options["autovacuum_vacuum_scale_factor"] <= 0.01
    assert options["autovacuum_vacuum_cost_delay"] == 0


@ALL
def test_F32_no_index_of_durable_work_is_gin_and_none_is_invalid(db: psycopg.Connection, table: str) -> None:
    found = db.execute(
        "SELECT a.amname, x.indisvalid FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid JOIN pg_am a ON a.oid = c.relam"
        " WHERE x.indrelid = %s::regclass",
        (table,),
    ).fetchall()
    assert set(found) == {("btree", True)}
