"""The order of locks, watched while tests run: what the engine executes is read for the levels that it takes.

`watched` is an autouse fixture of tests/commands, tests/races and tests/scenarios_db. Every statement that engine code
executes is looked up in the declarations of engine/db/locks.py; the levels are recorded per transaction on its connection,
and what breaks the documented order fails the test in which it happened. Nothing of this exists outside the tests.

    goes down     a level below one that the transaction holds (the root or definition that it has is free to it)
    two leaves    without a root or definition: a second leaf row, or several in one statement, not SKIP LOCKED
    waits         without a root or definition: for keys, a message or an earlier statement's repeat, a leaf (of a case) in hand
    keys twice    message keys are taken once
    undeclared    a lock that neither a fragment nor a function of locks.py declares

A request row, or that of a message's id, may be inserted last, because its key contains what is locked by then or it is run again.
Who holds the root may take definitions after leaves (what is called), because whoever takes a definition FOR UPDATE waits for no leaf
of a case.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from engine.db.locks import FRAGMENTS, FUNCTIONS, OF_NO_CASE, TABLES, Level
from engine.db.prepared import Prepared, Statements

ROOT = Path(__file__).parents[1]
ENGINE = str(ROOT / "engine")
HERE = {__file__, str(Path(psycopg.__file__).parent)}
OWNERS = {Level.DEPLOYMENT, Level.ROOT, Level.DEFINITION}

_FOUND = re.compile(
    r"(?P<spelled>\bFOR\s+(?:NO\s+KEY\s+UPDATE|UPDATE|KEY\s+SHARE|SHARE)\b(?:\s+OF\s+\w+)?)(?P<skips>\s+SKIP\s+LOCKED)?"
    r"|(?P<advisory>\bpg_advisory_\w*lock\w*)"
    r"|\b(?P<function>baton_(?:lock|open|take|cancel|spread|hold|free)\w*)\s*\("
    r"|\b(?:UPDATE|DELETE\s+FROM)\s+(?P<changed>\w+)"
    r"|\bINSERT\s+INTO\s+(?P<asked>request|message_receipt)\b",
    re.IGNORECASE,
)
_ONE_ROW = re.compile(r"\bid = %(?:\(\w+\))?s")


# ---- what a statement locks


@dataclass(frozen=True, slots=True)
class Lock:
    """One level that a statement takes. `many`: nothing in it says that it is one row. `level` None: undeclared.

    `shared`: a definition, FOR KEY SHARE.
    """

    level: Level | None
    table: str
    waits: bool = True
    many: bool = False
    shared: bool = False


@cache
def locks_of(statement: str) -> tuple[Lock, ...]:
    """The locks of a statement in the order of its text; rows of one table that it locked already count once."""
    found: list[Lock] = []
    for match in _FOUND.finditer(statement):
        for lock in _locks_at(statement, match):
            again = any((lock.level, lock.table) == (other.level, other.table) for other in found)
            if lock.level is not Level.LEAF or not again:
                found.append(lock)
    return tuple(found)


def _locks_at(statement: str, match: re.Match[str]) -> Iterator[Lock]:
    if name := match["function"]:
        yield from (Lock(level, name) for level in FUNCTIONS.get(name.lower(), (None,)))
    elif match["advisory"]:
        yield Lock(None, match["advisory"])
    elif table := match["changed"] or match["asked"]:
        if table in TABLES:
            yield Lock(TABLES[table], table, many=_ONE_ROW.search(_member(statement, match.start())) is None)
    else:
        member = _member(statement, match.start())
        table = _table(member, match["spelled"])
        if match["skips"]:
            yield Lock(_declared(statement, match.start()) or Level.LEAF, table, waits=False)
        else:
            level, shared = _declared(statement, match.start()), "SHARE" in match["spelled"].upper()
            yield Lock(level, table, many=_ONE_ROW.search(member) is None, shared=level is Level.DEFINITION and shared)


def _table(member: str, spelled: str) -> str:
    """Of which table the rows are: that of the alias after OF, else the first that is named."""
    alias = re.search(r"\bOF (\w+)", spelled)
    found = re.search(rf"\b(?:FROM|JOIN|,) (\w+) {alias[1]}\b" if alias else r"\bFROM (\w+)", member)
    return found[1] if found else ""


def _declared(statement: str, at: int) -> Level | None:
    for level, text in FRAGMENTS:
        begin = statement.rfind(text, 0, at + len(text))
        if 0 <= begin <= at < begin + len(text):
            return level
    return None


def _member(statement: str, at: int) -> str:
    """The parenthesised part that the position lies in: a member of a WITH, or the whole statement."""
    begin, depth = at, 0
    while begin > 0 and not (statement[begin] == "(" and depth == 0):
        depth += {")": 1, "(": -1}.get(statement[begin], 0)
        begin -= 1
    end, depth = at, 0
    while end < len(statement) and not (statement[end] == ")" and depth == 0):
        depth += {"(": 1, ")": -1}.get(statement[end], 0)
        end += 1
    return statement[begin:end]


# ---- what a transaction may take


@dataclass
class Transaction:
    """What one transaction has locked so far. `held`: (lock, number of the statement)."""

    held: list[tuple[Lock, int]] = field(default_factory=list)
    statements: int = 0

    @property
    def levels(self) -> list[str]:
        return [lock.level.name for lock, _ in self.held if lock.level is not None]

    def take(self, statement: str) -> list[str]:
        """Note the locks of a statement; what is wrong with them."""
        self.statements += 1
        wrong = []
        for lock in locks_of(statement):
            why = self._wrong(lock)
            if why:
                wrong.append(f"{why}: {lock.level.name if lock.level is not None else 'nothing'} of {lock.table} after {self.levels}")
            self.held.append((lock, self.statements))
        return wrong

    def _wrong(self, lock: Lock) -> str:
        levels = [held.level for held, _ in self.held if held.level is not None]
        owner = bool(OWNERS.intersection(levels)) or any(held.table in OF_NO_CASE for held, _ in self.held)
        leaf_before = any(held.level is Level.LEAF for held, _ in self.held)
        match lock.level:
            case None:
                return "undeclared"
            case Level.ROOT | Level.DEFINITION if lock.level in levels:
                return ""
            case Level.REQUEST:
                earlier = any(held.level is Level.LEAF and number < self.statements for held, number in self.held)
                return "waits" if earlier and not owner else ""
            case Level.KEYS if Level.KEYS in levels:
                return "keys twice"
        if lock.shared and Level.ROOT in levels and max(levels) <= Level.LEAF:
            return ""
        if any(level > lock.level for level in levels):
            return "goes down"
        if owner or not lock.waits:
            return ""
        if lock.level is Level.LEAF:
            return "two leaves" if leaf_before or lock.many else ""
        return "waits" if leaf_before else ""


# ---- watching


class Watch:
    """Every transaction of the engine while it is on. `wrong`: what broke the order, with the statement."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.finished: list[Transaction] = []
        self._open: WeakKeyDictionary[psycopg.Connection[Any], Transaction] = WeakKeyDictionary()
        self._one_at_a_time = threading.Lock()

    def saw(self, conn: psycopg.Connection[Any], statement: Any) -> None:
        """Called before a statement is executed, by whomever; the engine's alone are looked at."""
        with self._one_at_a_time:
            if conn.info.transaction_status is TransactionStatus.IDLE:
                self._open.pop(conn, None)  # what it held is over
            if isinstance(statement, str) and locks_of(statement) and _by_the_engine():
                if conn not in self._open:
                    self._open[conn] = Transaction()
                    self.finished.append(self._open[conn])
                for why in self._open[conn].take(statement):
                    self.wrong.append(f"{why}\n    in: {' '.join(statement.split())[:400]}")


def _by_the_engine() -> bool:
    """Whether the code that executes is the engine's: the first that is neither ours here nor the driver's."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not any(name.startswith(own) for own in HERE):
            return name.startswith(ENGINE)
        frame = frame.f_back  # type: ignore[assignment]  # None at the outermost frame
    return False


@contextmanager
def watching() -> Iterator[Watch]:
    """Read what any cursor of this process executes meanwhile."""
    watch, execute, execute_prepared, control = Watch(), psycopg.Cursor.execute, Prepared.execute, Statements.control

    def watched_execute(self: psycopg.Cursor[Any], query: Any, *args: Any, **kwargs: Any) -> psycopg.Cursor[Any]:
        watch.saw(self.connection, query)
        return execute(self, query, *args, **kwargs)

    def watched_prepared(self: Prepared, *args: Any) -> Prepared:
        watch.saw(self.connection, self.text)
        return execute_prepared(self, *args)

    def watched_control(self: Statements, word: str) -> None:
        watch.saw(self.connection, word)
        control(self, word)

    psycopg.Cursor.execute = watched_execute  # type: ignore[method-assign,assignment]
    Prepared.execute = watched_prepared  # type: ignore[method-assign]
    Statements.control = watched_control  # type: ignore[method-assign]
    try:
        yield watch
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]
        Prepared.execute = execute_prepared  # type: ignore[method-assign]
        Statements.control = control  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def watched() -> Iterator[Watch]:
    """The locks of this test; breaking their order fails it."""
    with watching() as watch:
        yield watch
    assert not watch.wrong, "the order of locks (engine/db/locks.py) was broken:\n" + "\n".join(watch.wrong)
