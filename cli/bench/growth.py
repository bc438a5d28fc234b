"""What grows with a case and what does not: instances of one activity, tokens of one scope, elements of one model.

All over the public commands, one connection, a database of its own. Times are those of whole commands, so each contains its one
transaction. The two sizes that a ratio compares are measured in turns, on the same server.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from sqlalchemy.engine import make_url

from cli.bench import growth_models as models
from engine.bpmn.reader import read_files
from engine.commands.cancel import cancel_instance, cancel_some
from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job, continue_loop
from engine.commands.outcome import (
    SYSTEM,
    Actor,
    CaseShrunk,
    Deployed,
    InstanceCancelled,
    InstanceStarted,
    ItemDone,
    Lease,
    Refusal,
    Rejected,
)
from engine.commands.start import start_instance
from engine.commands.tasks import assign
from engine.db.acquire import acquire_jobs
from engine.db.explain import explain
from engine.db.load import load_batch
from engine.db.migrate import migrate
from engine.db.session import connect, plain_url
from engine.ids import new_id

Connection = psycopg.Connection[Any]
CLERK = Actor("bench", role="administrator", display_name="Bench")
SERVICE = [("service", "bench.work")]


@dataclass(frozen=True, slots=True)
class GrowthFigures:
    """What one run found. `…_ms`: milliseconds of one command; ratios compare medians of commands taken in turns.

    `completion_…`: one completion inside a parallel multi-instance activity over a collection of 10 and of 10,000 items:
    its time, the shared buffers of its read under the lock, the rows of its snapshot.
    """

    completion_ratio_10_to_10000: float
    completion_ms_10: float
    completion_ms_10000: float
    completion_buffers_10: int
    completion_buffers_10000: int
    completion_rows_10: int
    completion_rows_10000: int
    create_5000_longest_transaction_ms: float
    create_5000_steps: int
    create_5000_seconds: float
    cancel_5000_longest_transaction_ms: float
    tokens_1000_start_ms: float
    tokens_1000_first_completion_ms: float
    tokens_1000_last_completion_ms: float
    tokens_1000_ended: bool
    parse_2000_seconds: float
    tree_3_deep_200_wide_instances: int
    tree_start_longest_transaction_ms: float
    tree_cancel_marked_ms: float
    tree_cancel_longest_transaction_ms: float
    tree_leaf_commands_refused_at_once: bool
    tree_rows_left: int
    server: str


def bench_growth(
    server: str, *, many: int = 10_000, created: int = 5_000, tokens: int = 1_000, elements: int = 2_000, wide: int = 200
) -> GrowthFigures:
    """Measure on `server` (a URL on which a database may be made; it is dropped afterwards)."""
    name = f"baton_growth_{os.getpid()}"
    url = make_url(plain_url(server)).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(plain_url(server), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            migrate(url)
            with connect(url, application_name="baton-bench") as conn:
                return _measure(conn, many, created, tokens, elements, wide)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _measure(conn: Connection, many: int, created: int, tokens: int, elements: int, wide: int) -> GrowthFigures:
    _deploy(conn, models.many_instances(), models.many_tokens(tokens), models.call_tree())
    version = str(conn.execute("SHOW server_version").fetchone()[0])  # type: ignore[index]  # SHOW gives one row
    steps = _create(conn, created)
    cancelled = _cancel(conn, steps.case)
    small, large = _create(conn, 10).case, _create(conn, many).case
    completions = _completions(conn, small, large)
    crowd = _tokens(conn, tokens)
    tree = _tree(conn, wide)
    return GrowthFigures(
        **completions,
        create_5000_longest_transaction_ms=round(max(steps.milliseconds), 1),
        create_5000_steps=len(steps.milliseconds),
        create_5000_seconds=round(sum(steps.milliseconds) / 1e3, 2),
        cancel_5000_longest_transaction_ms=round(max(cancelled), 1),
        **crowd,
        parse_2000_seconds=round(_parse(elements), 3),
        **tree,
        server=version,
    )


def _deploy(conn: Connection, *files: bytes) -> None:
    made = deploy(conn, [(f"growth-{number}.bpmn", xml) for number, xml in enumerate(files)], actor=SYSTEM)
    if not isinstance(made, Deployed):
        raise RuntimeError(f"the bench model was refused: {made}")


# ---- many instances of one activity


@dataclass(frozen=True, slots=True)
class _Steps:
    case: UUID
    milliseconds: list[float]


def _create(conn: Connection, number: int) -> _Steps:
    """Start a case whose activity has so many instances, and take the steps in which they begin."""
    return _go_on("many", {"items": [{"order": n, "customer": f"customer {n}"} for n in range(number)]}, conn)


def _go_on(key: str, variables: dict[str, Any], conn: Connection) -> _Steps:
    took, started = _timed(lambda: start_instance(conn, key, actor=CLERK, variables=variables))
    assert isinstance(started, InstanceStarted), started
    milliseconds = [took]
    while jobs := _lease(conn, [("continue", "")]):
        for job in jobs:
            took, done = _timed(lambda job=job: continue_loop(conn, job))  # type: ignore[misc]  # bound now
            assert isinstance(done, ItemDone), done
            milliseconds.append(took)
    _settle(conn)
    return _Steps(started.instance_id, milliseconds)


def _cancel(conn: Connection, case: UUID) -> list[float]:
    """Cancel it, and take the steps in which it ends; nothing is left."""
    took, marked = _timed(lambda: cancel_instance(conn, case, actor=CLERK, reason="", request_id=None))
    assert isinstance(marked, InstanceCancelled), marked
    milliseconds = [took, *_take_apart(conn)]
    _settle(conn)
    return milliseconds


def _take_apart(conn: Connection) -> list[float]:
    milliseconds = []
    for lease in _lease(conn, [("cancel", "")]):
        outcome: Any = CaseShrunk(lease.item_id, 0)
        while isinstance(outcome, CaseShrunk):
            took, outcome = _timed(lambda lease=lease: cancel_some(conn, lease))  # type: ignore[misc]  # bound now
            milliseconds.append(took)
    return milliseconds


def _completions(conn: Connection, small: UUID, large: UUID, *, rounds: int = 9) -> dict[str, Any]:
    """Complete iterations of both cases in turns. One more of each goes before, unmeasured: plans and caches are warm."""
    jobs = {case: _jobs_of(conn, case, rounds + 1) for case in (small, large)}
    reads = {case: _read(conn, leases[0]) for case, leases in jobs.items()}
    times: dict[UUID, list[float]] = {small: [], large: []}
    for number in range(rounds):
        for case in (small, large):
            lease = jobs[case][number]
            took, done = _timed(lambda lease=lease: complete_job(conn, lease, variables={}))  # type: ignore[misc]  # bound now
            assert isinstance(done, ItemDone), done
            if number:
                times[case].append(took)
    of_small, of_large = statistics.median(times[small]), statistics.median(times[large])
    return {
        "completion_ratio_10_to_10000": round(of_large / of_small, 3),
        "completion_ms_10": round(of_small, 2),
        "completion_ms_10000": round(of_large, 2),
        "completion_buffers_10": reads[small][0],
        "completion_buffers_10000": reads[large][0],
        "completion_rows_10": reads[small][1],
        "completion_rows_10000": reads[large][1],
    }


def _read(conn: Connection, lease: Lease) -> tuple[int, int]:
    """What a completion reads under its lock: shared buffers, and rows of its snapshot."""
    sql, params = "SELECT baton_lock_case('job', %(job)s, false)", {"job": lease.item_id}
    explain(conn, "warm", sql, params)
    buffers = explain(conn, "completion", sql, params).buffers
    case = load_batch(conn, [lease.item_id])[lease.item_id].ahead
    assert case is not None and case.snapshot is not None, "a service job has a case"
    return buffers, len(case.snapshot.scopes) + len(case.snapshot.tokens) + sum(len(s.variables) for s in case.snapshot.scopes.values())


def _jobs_of(conn: Connection, case: UUID, number: int) -> list[Lease]:
    """Leases on so many jobs of a case, whatever else is due."""
    conn.execute("UPDATE job SET held = '{bench}' WHERE kind = 'service' AND instance_id <> %s", (case,))
    leases = _lease(conn, SERVICE, number)
    conn.execute("UPDATE job SET held = '{}' WHERE held = '{bench}'")
    assert len(leases) == number, f"expected {number} jobs of {case}, found {len(leases)}"
    return leases


# ---- many tokens of one scope


def _tokens(conn: Connection, number: int) -> dict[str, Any]:
    """A fork, a job for each token, a join: the first completions find nobody at the join, the last ones nearly everybody."""
    conn.execute("UPDATE job SET held = '{bench}' WHERE kind = 'service'")
    start, started = _timed(lambda: start_instance(conn, "tokens", actor=CLERK, variables={}))
    assert isinstance(started, InstanceStarted), started
    _settle(conn)
    milliseconds = []
    while leases := _lease(conn, SERVICE, 50):
        work = load_batch(conn, [lease.item_id for lease in leases])
        for lease in leases:
            known = Lease("job", lease.item_id, lease.number, lease.owner, detail=work[lease.item_id].detail)
            took, done = _timed(lambda known=known: complete_job(conn, known, variables={}))  # type: ignore[misc]  # bound now
            assert isinstance(done, ItemDone), done
            milliseconds.append(took)
    ended = conn.execute("SELECT status FROM process_instance WHERE id = %s", (started.instance_id,)).fetchone()
    return {
        "tokens_1000_start_ms": round(start, 1),
        "tokens_1000_first_completion_ms": round(statistics.median(milliseconds[: number // 10]), 2),
        "tokens_1000_last_completion_ms": round(statistics.median(milliseconds[-number // 10 :]), 2),
        "tokens_1000_ended": ended == ("completed",) and len(milliseconds) == number,
    }


# ---- a tree of calls


def _tree(conn: Connection, wide: int) -> dict[str, Any]:
    """Three deep and `wide` wide, cancelled while a job is leased and a task is claimed in it."""
    steps = _go_on("tree", {"wide": wide}, conn)
    case = steps.case
    instances = conn.execute("SELECT count(*) FROM process_instance WHERE root_id = %s", (case,)).fetchone()
    (job,) = _lease(conn, [("service", "bench.tree")], 1)
    task = conn.execute("SELECT id FROM user_task WHERE root_id = %s AND status = 'claimed' LIMIT 1", (case,)).fetchone()
    assert instances is not None and task is not None, "each innermost process has a job and a task"
    marked, outcome = _timed(lambda: cancel_instance(conn, case, actor=CLERK, reason="", request_id=None))
    assert isinstance(outcome, InstanceCancelled), outcome
    late = (
        complete_job(conn, job, variables={}),
        complete_task(conn, task[0], actor=CLERK, variables={}, request_id=None),
        assign(conn, task[0], actor=CLERK, assignee=None, request_id=None),
    )
    longest = max(_take_apart(conn), default=0.0)
    left = sum(_count(conn, table, case) for table in ("token", "job", "external_task"))
    left += _count(conn, "user_task", case, "status IN ('open', 'claimed')") + _count(conn, "process_instance", case, "status = 'running'")
    return {
        "tree_3_deep_200_wide_instances": instances[0],
        "tree_start_longest_transaction_ms": round(max(steps.milliseconds), 1),
        "tree_cancel_marked_ms": round(marked, 1),
        "tree_cancel_longest_transaction_ms": round(longest, 1),
        "tree_leaf_commands_refused_at_once": all(
            isinstance(each, Rejected) and each.refusal is Refusal.INSTANCE_CANCELLING for each in late
        ),
        "tree_rows_left": left,
    }


def _count(conn: Connection, table: str, root: UUID, more: str = "true") -> int:
    sql = f"SELECT count(*) FROM {table} WHERE root_id = %s AND {more}"  # noqa: S608 - names of ours
    row = conn.execute(sql, (root,)).fetchone()
    assert row is not None
    return int(row[0])


# ---- many elements of one model


def _parse(elements: int) -> float:
    """Seconds to read, check and compile a model; the middle one of three."""
    xml = models.large_model(elements)

    def read() -> None:
        found = read_files([("large.bpmn", xml)])
        assert not found.problems, found.problems[:3]
        assert [len(each.nodes) for _, each in found.definitions] == [elements]

    return statistics.median(_timed(read)[0] for _ in range(3)) / 1e3


# ---- shared


def _lease(conn: Connection, capabilities: Iterable[tuple[str, str]], limit: int = 10) -> list[Lease]:
    found = acquire_jobs(conn, owner=str(new_id()), capabilities=list(capabilities), limit=limit, lease_seconds=600, workers=1)
    return [Lease(item.kind, item.item_id, item.number, item.owner, item.expires_at) for item in found]


def _settle(conn: Connection) -> None:
    """As autovacuum leaves the tables that grew; a measurement is over before it comes."""
    for table in ("scope", "token", "variable", "job", "process_instance"):
        conn.execute(f"VACUUM (ANALYZE) {table}")


def _timed(what: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = what()
    return (time.perf_counter() - begun) * 1e3, result
