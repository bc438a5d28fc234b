"""The migrations make what the transition maps say."""

from __future__ import annotations

import re

import psycopg
import pytest

from engine.core import lifecycle


@pytest.mark.parametrize("table", lifecycle.MAPS)
def test_each_status_check_lists_the_statuses_of_its_map(db: psycopg.Connection, table: str) -> None:
    definition = db.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", (f"ck_{table}_status",)).fetchone()
    assert definition is not None
    arrays = re.findall(r"'\{([\w,]+)\}'::text\[\]", definition[0])
    listed = {*re.findall(r"'(\w+)'::text\b", definition[0]), *",".join(arrays).split(",")} - {""}
    assert listed == set(lifecycle.MAPS[table])


def test_history_has_partitions_for_this_month_and_two_more(db: psycopg.Connection) -> None:
    partitions = db.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = 'history'::regclass").fetchone()
    assert partitions == (3,)
