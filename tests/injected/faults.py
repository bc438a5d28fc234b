"""Faults of a database connection, put between the engine and its driver while a command of a `Plan` runs on this thread.

    lost before        the connection is dead before a statement is sent
    lost between       the server ended the session meanwhile; the client notices when it sends the next statement
    lost after commit  applied, then raised: the server committed, its answer never came
    lost in flight     a commit was sent and the connection cut; the server is still at it while the client asks again
    serialization      40001 \\
    deadlock           40P01  \\  raised by the server, so that an open transaction is aborted
    statement timeout  57014  /
    lock timeout       55P03 /
    delay              the server answers late, while whatever is locked stays locked

A *passage* is one statement, or BEGIN, COMMIT or ROLLBACK. `Plan` says at which passage what happens. Whoever is not on a plan
(the test's own statements, threads that run no command) is left alone.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import psycopg
from psycopg.pq import PGconn, TransactionStatus

from engine.db.prepared import Prepared, Statements, error_of

Connection = psycopg.Connection[Any]

COMMITTED = ("lost after commit", "lost in flight")  # nobody knows whether it landed
CODES = {"serialization": "40001", "deadlock": "40P01", "statement timeout": "57014", "lock timeout": "55P03"}
KINDS = ("lost before", "lost between", *COMMITTED, *CODES, "delay")
MARK = "injected"  # in the text of every error that is made here
MOST = 3  # faults that one call meets

counts: Counter[str] = Counter()  # how often each kind really happened in this process
_counting = threading.Lock()
_here = threading.local()
_WRITES = re.compile(r"\b(?:INSERT|DELETE|UPDATE (?!OF\b|SKIP\b))", re.IGNORECASE)
_RAISE = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}', MESSAGE = '{mark}: {kind}'; END $$"
_LATE = "SELECT pg_sleep(0.002)"
_END = "SELECT pg_terminate_backend(pg_backend_pid())"


class Plan:
    """What one command is to meet. `reach`: the latest passage at which a fault that is not a commit's may come;
    `most`: how many it meets."""

    def __init__(self, chance: Random, kinds: Collection[str], *, reach: int, most: int = MOST) -> None:
        self.chance, self.kinds, self.reach, self.most = chance, sorted(kinds), reach, most
        self.made: list[str] = []
        self.passages = 0
        self.kind, self.at = "", 0
        self.draw()

    def draw(self) -> None:
        """The next fault, counted from here."""
        self.kind = self.chance.choice(self.kinds) if self.kinds and len(self.made) < self.most else ""
        self.passages, self.at = 0, self.chance.randint(1, 2 if self.kind in COMMITTED and self.chance.random() < 0.2 else self.last)

    @property
    def last(self) -> int:
        return 1 if self.kind in COMMITTED else self.reach

    def due(self, conn: Connection, statement: str) -> str:
        """The kind of fault that this passage meets, or ""."""
        if not self.kind or (self.kind in COMMITTED and not commits(conn, statement)) or statement == "ROLLBACK":
            return ""
        self.passages += 1
        return self.kind if self.passages == self.at else ""

    def met(self) -> None:
        """It happened; another may follow."""
        self.made.append(self.kind)
        with _counting:
            counts[self.kind] += 1
        if self.chance.random() < 0.3:
            self.draw()
        else:
            self.kind = ""

    @property
    def in_doubt(self) -> bool:
        """Whether the command may have been applied by a run whose answer was lost."""
        return any(kind in COMMITTED for kind in self.made)

    def made_of(self, problem: BaseException, conn: Connection) -> bool:
        """Whether an error is ours: it says so, or it comes of a connection that is gone because of us."""
        return MARK in str(problem) or (conn.closed and any(kind.startswith("lost") for kind in self.made))


def commits(conn: Connection, statement: str) -> bool:
    """Whether this statement, once it succeeded, has changed something for good."""
    if statement == "COMMIT":
        return True
    idle = conn.pgconn.transaction_status == TransactionStatus.IDLE
    return idle and _WRITES.search(statement) is not None


@contextmanager
def on(plan: Plan) -> Iterator[Plan]:
    """What the engine executes on this thread meets the plan."""
    _here.plan, _here.inside = plan, False
    try:
        yield plan
    finally:
        _here.plan = None


def planned() -> bool:
    """Whether a plan is on, on this thread."""
    return getattr(_here, "plan", None) is not None


def _passage(conn: Connection, statement: Any, send: Callable[[], Any], text: Callable[[], str]) -> Any:
    """One passage: `send` does it; `text` is the statement with its values, to be sent without waiting."""
    plan: Plan | None = getattr(_here, "plan", None)
    if plan is None or _here.inside or not isinstance(statement, str):
        return send()
    _here.inside = True
    try:
        kind = plan.due(conn, statement)
        return _meet(plan, kind, conn, send, text) if kind else send()
    finally:
        _here.inside = False


def _meet(plan: Plan, kind: str, conn: Connection, send: Callable[[], Any], text: Callable[[], str]) -> Any:
    pgconn = conn.pgconn
    match kind:
        case "delay":
            pgconn.exec_(_LATE.encode())
            plan.met()
            return send()
        case "lost before":
            raise _lost(plan, pgconn)
        case "lost between":
            pgconn.exec_(_END.encode())
            plan.met()
            return send()
        case "lost after commit":
            send()
            raise _lost(plan, pgconn)
        case "lost in flight":
            pgconn.send_query(text().encode())
            while pgconn.flush():
                pass
            raise _lost(plan, pgconn)
        case _:
            result = pgconn.exec_(_RAISE.format(code=CODES[kind], mark=MARK, kind=kind).encode())
            plan.met()
            raise error_of(conn, result)


def _lost(plan: Plan, pgconn: PGconn) -> psycopg.OperationalError:
    pgconn.finish()
    plan.met()
    return psycopg.OperationalError(f"{MARK}: server closed the connection unexpectedly ({plan.made[-1]})")


@contextmanager
def between_engine_and_driver() -> Iterator[None]:
    """The places where statements are executed ask the plan first."""
    execute, prepared, together, control = psycopg.Cursor.execute, Prepared.execute, Statements.execute_together, Statements.control

    def cursor_execute(self: Any, query: Any, params: Any = None, **kwargs: Any) -> Any:
        conn = self.connection
        return _passage(conn, query, lambda: execute(self, query, params, **kwargs), lambda: _with_values(conn, query, params))

    def prepared_execute(self: Any, params: Any) -> Any:
        return _passage(
            self.connection, self.text, lambda: prepared(self, params), lambda: _with_values(self.connection, self.text, params)
        )

    def statements_together(self: Any, statements: str, params: Any) -> Any:
        return _passage(
            self.connection,
            statements,
            lambda: together(self, statements, params),
            lambda: _with_values(self.connection, statements, params),
        )

    def statements_control(self: Any, word: str) -> None:
        _passage(self.connection, word, lambda: control(self, word), lambda: word)

    patched: Any = (
        (psycopg.Cursor, "execute", cursor_execute, execute),
        (Prepared, "execute", prepared_execute, prepared),
        (Statements, "execute_together", statements_together, together),
        (Statements, "control", statements_control, control),
    )
    for owner, name, ours, _ in patched:
        setattr(owner, name, ours)
    try:
        yield
    finally:
        for owner, name, _, theirs in patched:
            setattr(owner, name, theirs)


def _with_values(conn: Connection, statement: str, params: Any) -> str:
    return psycopg.ClientCursor(conn).mogrify(statement, params)
