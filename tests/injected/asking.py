"""Asking as clients do: a command that met a fault is asked for again, under the same request id or lease, until it answers.

Who asks again, from the inside out (docs/reliability.md):

1. `Command` itself, after 40001 and 40P01, on the same connection;
2. `Command.reconnecting`, after a lost connection, once, on another connection;
3. its caller, for everything else: a worker (`worker.database.Database.patiently`), a browser or an API client that was told 503.

Here the third one is played: the same call with the same arguments. Only errors that were injected are asked about again; any
other is the test's. A call without a lease that was not given a request id gets one when the answer to a commit is to be lost.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from random import Random
from typing import Any

import psycopg
from psycopg import pq

from engine.commands.outcome import Lease
from engine.commands.transaction import Command
from engine.db import acquire, load
from engine.db.session import connect
from tests.injected.faults import COMMITTED, Plan, between_engine_and_driver, on, planned

Connection = psycopg.Connection[Any]
# Doing them twice is doing them once.
HARMLESS = frozenset({"renew", "beat", "stopped"})
# Commits leases by its first statement and reads by its second: after that a fault spends an attempt, or gives it a higher number.
LEASES = frozenset({"acquire_external_tasks"})
# Not commands, and asked again by a worker's loop as long as nothing was committed. What an acquisition whose answer was lost leaves
# behind (leases that nobody knows of) runs out: tests/stateful, tests/faults.
ASKED = (acquire.acquire_jobs, acquire.acquire_deliveries, acquire.acquire_external, acquire.recover_expired, load.load_batch)


class Asking:
    """Draws a plan for each call. `first_only`: faults come before the first statement or at the commit, so that whoever
    queues for a lock keeps the place that a race gave it."""

    def __init__(self) -> None:
        self.seed, self.kinds, self.off, self.first_only = 0, frozenset[str](), True, False
        self.test, self._calls = "", 0
        self._answered: set[str] = set()
        self._reach: dict[str, int] = {}

    def begin(self, test: str, *, off: bool, first_only: bool) -> None:
        self.test, self.off, self.first_only, self._calls = test, off, first_only, 0
        self._answered.clear()

    def plan(self, name: str, *, repeatable: bool) -> Plan:
        self._calls += 1
        chance = Random(f"{self.seed} {self.test} {self._calls} {name}")
        kinds = self.kinds if repeatable else self.kinds - set(COMMITTED)
        if self.first_only or name in LEASES:
            return Plan(chance, kinds, reach=1, most=1)
        return Plan(chance, kinds, reach=self._reach.get(name, 3))

    def saw(self, name: str, passages: int) -> None:
        self._reach[name] = max(self._reach.get(name, 1), passages)

    def first_answer(self, what: str) -> bool:
        """Whether this is the first answer of this test to `what`."""
        first = what not in self._answered
        self._answered.add(what)
        return first


asking = Asking()


def ask(name: str, conn: Connection, plan: Plan, call: Callable[[], Any], what: str = "") -> Any:
    """Call until it answers; `conn` is made whole before each time. `what` is asked, however often."""
    way = way_of(conn)
    while True:
        try:
            with on(plan):
                outcome = call()
            asking.saw(name, plan.passages)
        except psycopg.Error as problem:
            if not plan.made_of(problem, conn):
                raise
        else:
            return as_first(outcome) if asking.first_answer(what) and plan.in_doubt else outcome
        finally:
            if conn.closed and plan.made:
                heal(conn, way)
            if plan.made:
                conn.execute("SELECT")  # whoever watches transactions (tests/lock_order.py) sees that the last one is over


def as_first(outcome: Any) -> Any:
    """An outcome that was found as one that was heard of at once."""
    return replace(outcome, repeated=False) if getattr(outcome, "repeated", False) else outcome


def way_of(conn: Connection) -> bytes:
    """Where a connection leads, with everything that it was opened with."""
    given = {each.keyword.decode(): each.val.decode() for each in conn.pgconn.info if each.val is not None}
    return psycopg.conninfo.make_conninfo(**given).encode()


def heal(conn: Connection, way: bytes) -> None:
    """Another session in the same connection object, which a test holds as a client holds its pool."""
    fresh = pq.PGconn.connect(way)
    assert fresh.status == pq.ConnStatus.OK, fresh.error_message
    fresh.nonblocking = 1
    conn.pgconn = fresh
    conn._prepared, conn._num_transactions = type(conn._prepared)(), 0
    vars(conn).pop("baton_statements", None)


def _reconnected(conn: Connection, way: bytes) -> Connection:
    """The second connection of `Command.reconnecting`, in place of `conn` meanwhile: who watches that one sees what waits."""
    fresh = psycopg.connect(way.decode(), autocommit=True)
    fresh.prepare_threshold = 1
    conn.pgconn = fresh.pgconn
    return fresh


def _repeatable(name: str, args: Any, kwargs: Any) -> bool:
    under_lease = any(isinstance(value, Lease) for value in (*args, *kwargs.values())) or "lease_number" in kwargs
    return name in HARMLESS or under_lease or kwargs.get("request_id") is not None


def _what(name: str, args: Any, kwargs: Any) -> str:
    """What is asked for: the item, whoever says it and with whatever values."""
    leases = [(each.item_id, each.number) for each in args if isinstance(each, Lease)]
    others = [each for each in args if not isinstance(each, Lease)]
    return repr((name, leases, others, kwargs.get("actor"), kwargs.get("lease_number")))


@contextmanager
def injecting() -> Iterator[Asking]:
    """Commands, and what workers ask beside them, are asked as above until the block ends."""
    original = Command.__call__

    def called(self: Command[Any, Any], conn: Connection, /, *args: Any, **kwargs: Any) -> Any:
        name = self.function.__name__
        if asking.off or planned() or not conn.autocommit or conn.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            return original(self, conn, *args, **kwargs)
        repeatable = _repeatable(name, args, kwargs)
        takes_id = not repeatable and "request_id" in inspect.signature(self.function).parameters
        plan = asking.plan(name, repeatable=repeatable or takes_id)
        if takes_id and plan.kind in COMMITTED:
            kwargs["request_id"] = f"asked-{asking._calls}-{plan.chance.random()}"
        elif takes_id:
            plan.kinds = [kind for kind in plan.kinds if kind not in COMMITTED]
        command = Command(self.function, self.reconnect or partial(_reconnected, conn, way_of(conn)))
        return ask(name, conn, plan, lambda: original(command, conn, *args, **kwargs), _what(name, args, kwargs))

    def asked(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(conn: Connection, *args: Any, **kwargs: Any) -> Any:
            if asking.off or planned() or conn.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                return function(conn, *args, **kwargs)
            name = function.__name__
            return ask(name, conn, asking.plan(name, repeatable=False), lambda: function(conn, *args, **kwargs))

        return wrapped

    Command.__call__ = called  # type: ignore[method-assign]
    ours = {function: asked(function) for function in ASKED}
    changed = list(_exchange(ours))
    try:
        with between_engine_and_driver():
            yield asking
    finally:
        Command.__call__ = original  # type: ignore[method-assign]
        for module, name, theirs in changed:
            setattr(module, name, theirs)


def _exchange(ours: dict[Any, Any]) -> Iterator[tuple[Any, str, Any]]:
    """The functions, wherever a module has imported them."""
    for module in [each for name, each in sys.modules.items() if name.split(".")[0] in ("tests", "engine")]:
        for name, value in list(vars(module).items()):
            if inspect.isfunction(value) and value in ours and module is not sys.modules[__name__]:
                setattr(module, name, ours[value])
                yield module, name, value


__all__ = ["asking", "connect", "injecting"]
