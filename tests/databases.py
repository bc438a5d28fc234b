"""Databases for tests: copies of the migrated template, emptied and lent again.

A copy costs from a tenth of a second to two on a busy machine; emptying one costs milliseconds. A database comes back
only if its schema is as it was and few rows were left in it: a test that changed a table, or that made bloat on
purpose, gets and leaves a copy of its own. Whatever is still connected is cut off first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import psycopg
from sqlalchemy.engine import make_url

from engine.db import called, definitions
from engine.db.migrate import migrate

FEW_ROWS = 5_000

TEST_CLOCK = """
CREATE TABLE test_clock (ahead interval NOT NULL);
INSERT INTO test_clock VALUES ('0');
CREATE OR REPLACE FUNCTION baton_now() RETURNS timestamptz LANGUAGE sql STABLE AS
  'SELECT statement_timestamp() + (SELECT ahead FROM test_clock)';
CREATE OR REPLACE FUNCTION baton_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
  'SELECT clock_timestamp() + (SELECT ahead FROM test_clock)';
"""

_SCHEMA = """
SELECT md5(string_agg(line, ',' ORDER BY line)) FROM (
  SELECT format('%s %s %s %s', relname, relkind, relispartition, reloptions) AS line FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
  UNION ALL SELECT format('%s %s', conname, conrelid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT format('%s %s %s', tgname, tgrelid, tgenabled) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT format('%s %s', proname, md5(prosrc)) FROM pg_proc WHERE pronamespace = 'public'::regnamespace) found
"""
_TABLES = """
SELECT array_agg(c.relname::text) FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND c.relname NOT IN ('alembic_version', 'test_clock')
"""
_CUT_OFF = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def in_database(url: str, name: str) -> str:
    """The same server, another database."""
    return make_url(url).set(database=name).render_as_string(hide_password=False)


@contextmanager
def template(server_url: str, name: str) -> Iterator[str]:
    """A migrated database with the movable clock, copied by the others and never written; dropped in the end."""
    url = in_database(server_url, name)
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
    try:
        migrate(url)
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(TEST_CLOCK)
        yield url
    finally:
        with psycopg.connect(server_url, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


class Databases:
    """Lends databases of one server; `close` drops them all."""

    def __init__(self, server_url: str, template_url: str, *, prefix: str) -> None:
        self.server_url, self.prefix = server_url, prefix
        self.template = make_url(template_url).database
        self._numbers = count(1)
        self._free: list[str] = []
        self._all: set[str] = set()
        with psycopg.connect(template_url, autocommit=True) as conn:
            self._schema = _one(conn, _SCHEMA)

    def lend(self, *, new: bool = False) -> str:
        """An empty database that nobody else uses; a new one has no statistics yet."""
        if self._free and not new:
            return self._free.pop()
        name = f"{self.prefix}_{next(self._numbers)}"
        self._admin(f"CREATE DATABASE {name} TEMPLATE {self.template} STRATEGY file_copy")
        url = in_database(self.server_url, name)
        self._all.add(url)
        return url

    def take_back(self, url: str) -> None:
        """Empty it for the next test, or drop it."""
        if self._emptied(url):
            self._free.append(url)
        else:
            self._drop(url)

    def close(self) -> None:
        for url in list(self._all):
            self._drop(url)

    def _emptied(self, url: str) -> bool:
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(_CUT_OFF)
            if _one(conn, _SCHEMA) != self._schema:
                return False
            conn.execute("SET session_replication_role = replica")  # foreign keys need not be followed when everything goes
            gone = sum(conn.execute(f"DELETE FROM {table}".encode()).rowcount for table in _one(conn, _TABLES))
            conn.execute("UPDATE test_clock SET ahead = '0'")
        definitions._newest.clear()  # what this process remembers of what is gone
        called._known.clear()
        return gone <= FEW_ROWS

    def _drop(self, url: str) -> None:
        self._admin(f"DROP DATABASE IF EXISTS {make_url(url).database} WITH (FORCE)")
        self._all.discard(url)

    def _admin(self, statement: str) -> None:
        with psycopg.connect(self.server_url, autocommit=True) as admin:
            admin.execute(statement.encode())


def _one(conn: psycopg.Connection, sql: str):
    row = conn.execute(sql.encode()).fetchone()
    assert row is not None
    return row[0]
