"""The previous release, unpacked once, and a database that was its own before this release migrated it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest

from tests.databases import in_database
from tests.releases.previous import Release, unpack


@pytest.fixture(scope="session")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return unpack(tmp_path_factory.mktemp("previous-release"))


@pytest.fixture
def upgraded_url(server_url: str, previous: Release) -> Iterator[str]:
    """A database that the previous release made and this one has not touched yet."""
    name = f"baton_upgraded_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            url = in_database(server_url, name)
            previous.baton("migrate", DATABASE_URL=url)
            yield url
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
