"""The previous release goes on working on the schema that this one makes of its: what it names is still there, and alike.

tests/releases runs both; these tests name the mistake at once.
"""

from __future__ import annotations

import psycopg

from engine.db.functions import function_files
from engine.db.session import connect
from tests.releases.conftest import previous, upgraded_url
from tests.releases.previous import THIS

__all__ = ["previous", "upgraded_url"]  # fixtures

SIGNATURES = """
SELECT proname::text, format('(%s) %s %s', pg_get_function_arguments(oid), pg_get_function_result(oid), provolatile)
FROM pg_proc WHERE proname LIKE 'baton\\_%' ORDER BY 1
"""
BODIES = "SELECT proname::text, btrim(prosrc, E' \\n') FROM pg_proc WHERE proname LIKE 'baton\\_%'"
COLUMNS = """
SELECT c.relname::text, a.attname::text, format_type(atttypid, atttypmod), attnotnull, atthasdef OR attidentity <> ''
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p') AND NOT relispartition AND c.relnamespace = 'public'::regnamespace
"""


def test_a_migration_changes_nothing_that_the_previous_release_names(upgraded_url: str):
    with connect(upgraded_url) as conn:
        functions, columns = _pairs(conn, SIGNATURES), _columns(conn)
        assert len(functions) > 20 and len(columns) > 200
        THIS.baton("migrate", DATABASE_URL=upgraded_url)
        functions_now, columns_now, bodies = _pairs(conn, SIGNATURES), _columns(conn), _pairs(conn, BODIES)

    # The previous release calls a function by name: other arguments, another result or a second one of that name break its calls.
    names = {name for name, _ in functions}
    assert {each for each in functions_now if each[0] in names} == functions, "a function that changes gets a new name; the old one stays"
    for place, (kind, never_null, _) in columns.items():
        assert place in columns_now and columns_now[place][0] == kind, f"{place}: expected {kind}, found {columns_now.get(place)}"
        assert never_null or not columns_now[place][1], f"{place}: expected NULL allowed as before: the previous release may write it"
    tables = {table for table, _ in columns}
    for (table, column), (_, never_null, filled) in columns_now.items():
        if table in tables and (table, column) not in columns:
            assert filled or not never_null, f"{table}.{column}: expected a default, or NULL: the previous release does not know it"
    # An upgrade ends with the functions of this tree: who edits a file writes a migration that installs it.
    assert {(name, text.split("$$")[1].strip()) for name, text in function_files().items()} <= bodies


def test_functions_change_once_and_after_the_last_migration(template_url: str):
    """Each migration commits by itself while the previous release is at work: a function may name what only a later one adds."""
    with connect(template_url) as conn:
        made = conn.execute(
            "SELECT DISTINCT xmin::text::bigint FROM pg_proc WHERE proname LIKE 'baton\\_%' AND proname NOT IN ('baton_now', 'baton_clock')"
        ).fetchall()
        [(migrated,)] = conn.execute("SELECT xmin::text::bigint FROM alembic_version").fetchall()
    assert len(made) == 1 and made[0][0] > migrated


def _pairs(conn: psycopg.Connection, query: str) -> set[tuple[str, str]]:
    return {(name, text) for name, text in conn.execute(query).fetchall()}


def _columns(conn: psycopg.Connection) -> dict[tuple[str, str], tuple[str, bool, bool]]:
    """(table, column) -> type, whether it may not be null, whether it is filled by itself."""
    return {(table, column): rest for table, column, *rest in conn.execute(COLUMNS).fetchall()}
