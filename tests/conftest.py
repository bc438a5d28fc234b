"""Fixtures that every test may use. The server comes from DATABASE_URL, or is started from the wheel for this run.

`database_url`  an empty, migrated database for the test alone (committed data, any number of connections)
`committed_db`  one autocommit connection to such a copy
`db`            the same connection kind, on one shared copy, inside a transaction that is rolled back
`clock`         moves the database's clock: `clock.advance(seconds=31)`
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from hypothesis import settings

from engine.db.session import connect, plain_url
from tests.databases import Databases, in_database, template
from tests.pooler import PgBouncer, pooling

# The same examples at every run, however slow the machine: a red run is about the code. BATON_EXPLORE=1 draws new ones.
settings.register_profile("baton", deadline=None, derandomize="BATON_EXPLORE" not in os.environ)
settings.load_profile("baton")


class Clock:
    """The database's clock in a test database: one stored offset moves both of its functions together (R11)."""

    def __init__(self, url: str) -> None:
        self.url = url

    def advance(self, **duration: float) -> None:
        with connect(self.url) as conn:
            conn.execute("UPDATE test_clock SET ahead = ahead + %s", (timedelta(**duration),))


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on which databases may be made."""
    given = os.environ.get("BATON_TEST_SERVER") or os.environ.get("DATABASE_URL")
    if given:
        yield plain_url(given)
        return
    from cli.embedded import EmbeddedPostgres

    server = EmbeddedPostgres.for_tests()
    try:
        yield plain_url(server.start())
    finally:
        server.stop()


@pytest.fixture(scope="session")
def template_url(server_url: str) -> Iterator[str]:
    """The database that the others are copies of: one made for this run, or that of BATON_TEST_TEMPLATE."""
    if given := os.environ.get("BATON_TEST_TEMPLATE"):
        yield in_database(server_url, given)
        return
    with template(server_url, f"baton_template_{os.getpid()}") as url:
        yield url


@pytest.fixture(scope="session")
def databases(server_url: str, template_url: str) -> Iterator[Databases]:
    lender = Databases(server_url, template_url, prefix=f"baton_test_{os.getpid()}")
    yield lender
    lender.close()


@pytest.fixture(scope="session")
def pooler(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PgBouncer | None]:
    """With BATON_TEST_POOLER set, every test reaches its database through a PgBouncer in transaction mode."""
    if not os.environ.get("BATON_TEST_POOLER"):
        yield None
        return
    with pooling(server_url, tmp_path_factory.mktemp("pooler")) as made:
        yield made


@pytest.fixture
def database_url(databases: Databases, pooler: PgBouncer | None) -> Iterator[str]:
    """An empty, migrated database for this test alone."""
    url = databases.lend()
    yield pooler.url(url) if pooler else url
    databases.take_back(url)


@pytest.fixture
def committed_db(database_url: str) -> Iterator[psycopg.Connection]:
    with connect(database_url) as conn:
        yield conn


@pytest.fixture(scope="session")
def shared_database_url(databases: Databases) -> str:
    return databases.lend()


@pytest.fixture
def db(shared_database_url: str) -> Iterator[psycopg.Connection]:
    with connect(shared_database_url) as conn:
        conn.execute("BEGIN")
        yield conn
        conn.execute("ROLLBACK")


@pytest.fixture
def clock(database_url: str) -> Clock:
    return Clock(database_url)
