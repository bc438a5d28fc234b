"""The database goes away under load: connections cut, restarted, killed. On a server of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from cli.embedded import EmbeddedPostgres
from engine.db.migrate import migrate
from engine.db.session import connect
from tests.faults.conftest import ROUNDS, Load, loaded, rest
from tests.worker.processes import eventually

pytestmark = [pytest.mark.faults, pytest.mark.slow]


class Server(EmbeddedPostgres):
    """A server that may be down for a while: `stop` would take its data along."""

    def stop_for_now(self) -> None:
        with self._lock():
            self._halt("fast")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server.for_tests()
    assert isinstance(made, Server)
    made.start()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def load_there(server: Server, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Load]:
    name = f"faults_{abs(hash(request.node.name))}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    migrate(server.url(name))
    with loaded(lambda: server.url(name), tmp_path) as made:
        yield made


@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
def test_a_restart_of_the_database_under_load_loses_nothing(server: Server, load_there: Load, how: str):
    for _ in range(ROUNDS):
        load_there.goes_on()
        if how == "kill":
            server.kill()
            server.start()
        else:
            server.restart(mode=how)
        load_there.goes_on()
    load_there.settle(some_recovered=False)
    steady = load_there.workers[0]
    assert steady.lines("database_back")
    said = steady.lines("database_unreachable")
    assert 1 <= len(said) <= 4 * ROUNDS, f"expected few lines about one outage, found {len(said)}"


def test_a_worker_told_to_stop_while_there_is_no_database_stops_all_the_same(server: Server, load_there: Load):
    second = load_there.worker("second", drain_seconds="1").ready()
    load_there.goes_on()
    server.stop_for_now()
    second.says("database_unreachable")
    assert second.terminate(seconds=30) == 0
    server.start()
    load_there.goes_on()
    load_there.settle(some_recovered=False)


def test_F42_connections_cut_at_any_moment_lose_nothing_and_double_nothing(load_there: Load):
    load_there.worker("second").ready()
    with connect(load_there.url()) as conn:
        cut = 0
        while cut < 40 * ROUNDS:
            victims = conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND state = 'active' AND backend_type = 'client backend' ORDER BY random() LIMIT 1"
            ).fetchall()
            cut += len(victims)
            rest(0.05)
    load_there.goes_on()
    load_there.settle(some_recovered=False)
    eventually(lambda: all(process.process.poll() is None for process in load_there.workers), "both workers to live")
