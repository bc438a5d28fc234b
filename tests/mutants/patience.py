"""A pytest plugin for the runs of mutants: no statement of a test waits longer than PATIENCE.

A mutant may make somebody wait for ever, in the test's own thread too; so that is noticed, and soon.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import psycopg
import pytest

PATIENCE = 20  # seconds


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, Any, Any]:
    url = yield
    if fixturedef.argname == "database_url":
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(f"ALTER DATABASE {conn.info.dbname} SET statement_timeout = '{PATIENCE}s'".encode())
    return url
