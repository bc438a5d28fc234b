"""The models are what the migrations make: alembic finds no difference, and the catalogs are the same to the letter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from engine.db.models import Base
from engine.db.session import connect, make_engine
from tests.databases import in_database

CLOCK = """
CREATE FUNCTION baton_now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT statement_timestamp()';
CREATE FUNCTION baton_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';
"""
OURS = "c.relnamespace = 'public'::regnamespace AND NOT c.relispartition AND c.relname NOT IN ('alembic_version', 'test_clock')"
CATALOG = {
    "tables": f"SELECT relname, relkind, reloptions, pg_get_partkeydef(oid) FROM pg_class c WHERE relkind IN ('r', 'p') AND {OURS}",
    "columns": "SELECT c.relname, a.attname, a.attnum, format_type(atttypid, atttypmod), attnotnull, attidentity,"
    " pg_get_expr(adbin, adrelid) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
    " LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum"
    f" WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p') AND {OURS}",
    "constraints": "SELECT c.relname, conname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = conrelid"
    f" WHERE contype <> 'n' AND {OURS}",
    "indexes": f"SELECT c.relname, pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE {OURS}",
}


def test_alembic_would_change_nothing(template_url: str) -> None:
    def ours(thing: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
        return type_ != "table" or not (reflected and compare_to is None and (str(name).startswith("history_") or name == "test_clock"))

    engine = make_engine(template_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"include_object": ours, "compare_type": True, "target_metadata": Base.metadata}
        )
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


@pytest.fixture(scope="module")
def made_by_models(server_url: str) -> Iterator[str]:
    name = f"baton_made_by_models_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {name}")
    url = in_database(server_url, name)
    with connect(url) as conn:
        conn.execute(CLOCK)
    engine = make_engine(url)
    Base.metadata.create_all(engine)
    engine.dispose()
    yield url
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("what", CATALOG)
def test_models_and_migrations_make_the_same(made_by_models: str, template_url: str, what: str) -> None:
    def catalog(url: str) -> set[str]:
        with connect(url) as conn:
            return {str(row) for row in conn.execute(CATALOG[what]).fetchall()}

    modelled, migrated = catalog(made_by_models), catalog(template_url)
    assert len(migrated) > 20
    assert modelled - migrated == migrated - modelled == set()
