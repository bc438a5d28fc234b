"""A pytest plugin for the runs of mutants: tests share one database, emptied in between, where each would get a copy.

A copy costs half a second of a busy machine, and a mutant is judged by hundreds of tests. Tests that change the schema
(OWN_COPY in their source) keep their copy. What a test before left connected is cut off first.
"""

from __future__ import annotations

import ast
import inspect
import re
from itertools import count
from typing import Any

import psycopg
import pytest

from engine.db import definitions

OWN_COPY = re.compile(
    r"ALTER (?:TABLE|DATABASE)|CREATE (?:UNIQUE |OR REPLACE )*(?:TABLE|VIEW|INDEX|FUNCTION|TRIGGER|ROLE)|DROP |migrate\(|CLUSTER|VACUUM"
)
_EMPTY = """
SELECT string_agg(format('DELETE FROM %I', c.relname), '; ')
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND c.relname NOT IN ('alembic_version', 'test_clock')
"""
_CUT_OFF = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
PATIENCE = 20  # seconds that a statement may wait: a mutant that makes somebody wait for ever is noticed by then
_numbers = count(1)
_shared: dict[str, str] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> str | None:
    if fixturedef.argname != "database_url":
        return None
    server, template = request.getfixturevalue("server_url"), request.getfixturevalue("template_url")
    if OWN_COPY.search(_source(request)):
        url = _copy(server, template, f"own_{next(_numbers)}")
        fixturedef.addfinalizer(lambda: _drop(server, url))
    else:
        if server not in _shared:
            _shared[server] = _copy(server, template, "shared")
        url = _shared[server]
        _empty(url)
    fixturedef.cached_result = (url, fixturedef.cache_key(request), None)
    return url


def pytest_sessionfinish() -> None:
    for server, url in _shared.items():
        _drop(server, url)


def _source(request: Any) -> str:
    """The test, and the helpers and fixtures of its file, any of which it may use."""
    module = inspect.getsource(request.module)
    tests = [node for node in ast.parse(module).body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    helpers = module
    for node in tests:
        helpers = helpers.replace(ast.get_source_segment(module, node) or "", "")
    return helpers + inspect.getsource(request.function)


def _copy(server: str, template: str, what: str) -> str:
    name = f"{template.rsplit('/', 1)[1]}_{what}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template.rsplit('/', 1)[1]} STRATEGY file_copy".encode())
        admin.execute(f"ALTER DATABASE {name} SET statement_timeout = '{PATIENCE}s'".encode())
    return f"{template.rsplit('/', 1)[0]}/{name}"


def _drop(server: str, url: str) -> None:
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {url.rsplit('/', 1)[1]} WITH (FORCE)".encode())


def _empty(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        conn.execute("SET session_replication_role = replica")  # foreign keys need not be followed when everything goes
        row = conn.execute(_EMPTY).fetchone()
        assert row is not None
        conn.execute(row[0])
        conn.execute("UPDATE test_clock SET ahead = '0'")
    definitions._newest.clear()  # what this process remembers of what is gone
