"""What an acquisition of ten costs: with a thousand rows waiting and with a million, after many were consumed, behind a crowd.

The statement is the worker's, prepared, on a connection like the worker's. Each case has a database of its own and is measured in
turns with another one in which a thousand rows wait and nothing else is. The commit is not waited for here: it costs the same
everywhere. Nothing vacuums; watermarks stand where a worker's upkeep puts them once a minute.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from cli.bench import plans
from engine.db.acquire import JOB, acquire_jobs
from engine.db.marks import move_watermarks
from engine.db.migrate import migrate
from engine.db.session import connect, plain_url

Connection = psycopg.Connection[Any]
TOPIC, LIVE, LIMIT = "bench.nothing", 1000, 10
BRANCH = [("service", TOPIC)]
ROUNDS, WARM = 60, 10


@dataclass(frozen=True, slots=True)
class Case:
    """One acquisition of ten, in milliseconds (medians) and in buffers, beside a thousand rows alone. `ratio`: of the milliseconds."""

    what: str
    rows: int
    wanted: float | None
    ratio: float
    milliseconds: float
    alone_milliseconds: float
    buffers: int
    alone_buffers: int


def acquisition_at_scale(server: str, name: str, *, rows: int) -> list[Case]:
    """`rows`: how many wait, or stand in front; half as many are consumed. Databases `name`_… are made and dropped."""
    cases: list[tuple[str, int, float | None, Callable[[Connection], None]]] = [
        ("waiting", rows, 1.15, lambda conn: _insert(conn, rows - LIVE, at=WAITING)),
        ("consumed without a vacuum", rows // 2, 1.3, lambda conn: _consume(conn, rows // 2, at=OLD)),
        ("paused", rows, 1.5, lambda conn: _paused(conn, rows)),
        ("held", rows, 1.5, lambda conn: _insert(conn, rows, at=OLD, held="{suspended}")),
        ("not yet due", rows, 1.5, lambda conn: _insert(conn, rows, at=LATER)),
        ("of handlers that nobody has", rows, 1.5, lambda conn: _insert(conn, rows, at=OLD, topic="bench.unknown")),
    ]
    found = []
    with _migrated(server, name) as template:
        for what, count, wanted, fill in cases:
            found.append(_case(server, template, what, count, wanted, fill))
        found.append(_under_a_snapshot(server, template, rows // 10))
    return found


def _case(server: str, template: str, what: str, count: int, wanted: float | None, fill: Callable[[Connection], None]) -> Case:
    with ExitStack() as stack:
        alone, behind = (stack.enter_context(_copy(server, template, part)) for part in ("alone", "behind"))
        for conn, fills in ((alone, ()), (behind, (fill,))):
            for each in fills:
                each(conn)
            _insert(conn, LIVE, at=NOW)
        return _measured(alone, behind, what, count, wanted)


def _under_a_snapshot(server: str, template: str, count: int) -> Case:
    """Somebody's transaction sees how it was before so many rows were consumed, all within the margin of the watermark."""
    with ExitStack() as stack:
        alone, behind = (stack.enter_context(_copy(server, template, part)) for part in ("alone", "behind"))
        reader = stack.enter_context(psycopg.connect(_url_of(behind)))
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM job")
        _consume(behind, count, at=RECENT)
        for conn in (alone, behind):
            _insert(conn, LIVE, at=NOW)
        return _measured(alone, behind, "consumed under a snapshot", count, None)


def _measured(alone: Connection, behind: Connection, what: str, count: int, wanted: float | None) -> Case:
    for conn in (alone, behind):
        conn.execute("ANALYZE job")
        move_watermarks(conn, JOB, BRANCH, sweep=True)
    times: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(WARM + ROUNDS):
        for place, conn in enumerate((alone, behind)):
            times[place].append(_acquisition(conn))
    small, large = (statistics.median(times[place][WARM:]) for place in (0, 1))
    buffers = [plans.acquisition(conn, "job", BRANCH, limit=LIMIT).buffers for conn in (alone, behind)]
    return Case(what, count, wanted, round(large / small, 3), round(large, 3), round(small, 3), buffers[1], buffers[0])


def _acquisition(conn: Connection) -> float:
    begun = time.perf_counter()
    rows = acquire_jobs(conn, owner="bench", capabilities=BRANCH, limit=LIMIT, lease_seconds=3600, workers=2)
    took = time.perf_counter() - begun
    if len(rows) != LIMIT:
        raise RuntimeError(f"expected {LIMIT} jobs to be acquired, found {len(rows)}")
    return took * 1000


# ---- rows, as the engine would have left them

NOW = "baton_clock() - interval '2 minutes' + g * interval '1 ms'"
WAITING = "baton_clock() - interval '1 minute' + g * interval '1 us'"  # behind those
RECENT = "baton_clock() - interval '4 minutes' + g * interval '1 us'"
OLD = "baton_clock() - interval '20 days' + g * interval '1 ms'"
LATER = "baton_clock() + interval '1 day' + g * interval '1 ms'"
BATCH = 50_000

# As engine.ids makes them: the time first, so that what was made together lies together in an index.
_ID = (
    "(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 3)"
    " || '8' || substr(md5(random()::text), 1, 15))::uuid"
)

_ROWS = """
INSERT INTO job (id, kind, topic, element_id, instance_id, root_id, definition_id, payload, held, due_at, available_at)
SELECT {id}, 'service', %s, 'task1', c.id, c.id, c.id, '{{}}', %s, {at}, {at}
FROM generate_series(1, %s) g CROSS JOIN (SELECT '00000000-0000-7000-8000-000000000001'::uuid AS id) c
"""


def _insert(conn: Connection, count: int, *, at: str, topic: str = TOPIC, held: str = "{}") -> None:
    rows = _ROWS.format(id=_ID, at=at)
    conn.execute(rows, (topic, held, count))


def _consume(conn: Connection, count: int, *, at: str) -> None:
    """Leased and ended, by the ten thousand, as jobs are: each leaves two dead versions and their places in the indexes."""
    for _ in range(0, count, BATCH):
        _insert(conn, min(BATCH, count), at=at)
        conn.execute(
            "UPDATE job SET status = 'leased', lease_owner = 'gone', lease_number = 1, attempts = 1, leased_at = baton_clock(),"
            " lease_expires_at = baton_clock() + interval '1 hour' WHERE status = 'available'"
        )
        conn.execute("DELETE FROM job WHERE status = 'leased'")


def _paused(conn: Connection, count: int) -> None:
    _insert(conn, count, at=OLD, topic="bench.paused")
    conn.execute("INSERT INTO pause (kind, topic, paused_by) VALUES ('service', 'bench.paused', 'bench')")


# ---- databases

NOT_WAITING = "ALTER DATABASE {name} SET synchronous_commit = off"


@contextmanager
def _migrated(server: str, name: str) -> Iterator[str]:
    with _database(server, f"{name}_template", "") as url:
        migrate(url)
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("ALTER TABLE job SET (autovacuum_enabled = off)")
        yield f"{name}_template"


@contextmanager
def _copy(server: str, template: str, part: str) -> Iterator[Connection]:
    with (
        _database(server, template.replace("template", part), f"TEMPLATE {template}") as url,
        connect(url, application_name="baton-bench") as conn,
    ):
        yield conn


@contextmanager
def _database(server: str, name: str, how: str) -> Iterator[str]:
    with psycopg.connect(plain_url(server), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} {how}")
        admin.execute(NOT_WAITING.format(name=name))
        try:
            yield make_url(plain_url(server)).set(database=name).render_as_string(hide_password=False)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _url_of(conn: Connection) -> str:
    return psycopg.conninfo.make_conninfo(conn.info.dsn, password=conn.info.password)
