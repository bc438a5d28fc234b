"""What several workers, two people, an operator and the network do, one thing after the other, in any order (R3 to R10).

Before and after each command the rows are read. What the command answered and what it changed must be what the rows before,
its lease or its request say; nothing else may have changed. A command may meet a fault of tests/injected: then it is asked
again at once, or later, or never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar
from uuid import UUID

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.commands.outcome import InstanceStarted, Rejected
from engine.commands.start import start_instance
from engine.core.lifecycle import DELIVERY, USER_TASK, WORK
from engine.db.session import connect
from tests.cast import ADA
from tests.conftest import Clock
from tests.databases import Databases
from tests.injected.asking import heal, way_of
from tests.injected.faults import Plan, between_engine_and_driver, on
from tests.stateful import house
from tests.stateful.house import Item

Connection = psycopg.Connection[Any]
MOST_CASES = 12
WORKERS = ("A", "B", "C")
SURE = ("",) * 8  # no fault; as often as this
BEFORE = ("lost before", "lost between", "serialization", "statement timeout", "lock timeout")
FAULTS = st.sampled_from((*SURE, *BEFORE, "lost after commit", "lost after commit"))
EARLY = st.sampled_from((*SURE, *BEFORE))
PASSAGES = st.integers(1, 3)
AGAIN = st.sampled_from(("now", "later"))
INDEX = st.integers(0, 1000)


class Once(Plan):
    """One fault, at one passage (or at the first commit)."""

    def __init__(self, kind: str, at: int) -> None:
        super().__init__(Random(0), (), reach=1)
        self.kind, self.at = kind, 1 if kind == "lost after commit" else at

    def draw(self) -> None:
        self.kind = ""


class Unknown:
    """Nobody has heard what became of it."""


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Doubt:
    """A call whose answer was lost; it may be made again."""

    call: Callable[[Connection], Any]
    answered: Callable[[Any], None]


class Several(RuleBasedStateMachine):
    """The part that every rule uses; rules.py has the rules."""

    databases: ClassVar[Databases]
    met: ClassVar[Counter[str]] = Counter()  # what happened in this run; scripts.py makes sure of each

    def __init__(self) -> None:
        super().__init__()
        self.url = self.databases.lend()
        self.sees = connect(self.url)
        self.at = {name: connect(self.url) for name in (*WORKERS, "people")}
        self.clock = Clock(self.url)
        house.furnish(self.sees)
        self.doubts: list[Doubt] = []
        self.numbers: dict[UUID, Item] = {}
        self.task_seen: dict[UUID, str] = {}
        self.started: dict[str, UUID] = {}
        self.asked = 0
        self._patch = between_engine_and_driver()
        self._patch.__enter__()

    # ---- one command

    def do(self, who: str, call: Callable[[Connection], Any], fault: str = "", passage: int = 1, again: str = "now") -> Any:
        """What it answered, or UNKNOWN if it met a fault and is not asked again now."""
        conn, plan = self.at[who], Once(fault, passage)
        way = way_of(conn)
        while True:
            try:
                with on(plan):
                    return call(conn)
            except psycopg.Error as problem:
                if not plan.made_of(problem, conn):
                    raise
                self.met[fault] += 1
                if conn.closed:
                    heal(conn, way)
                if again == "later":
                    return UNKNOWN

    def number(self) -> int:
        self.asked += 1
        return self.asked

    # ---- what must hold of any command

    def only(self, before: dict[UUID, Item], allowed: Iterable[UUID] = (), *, case: UUID | None = None) -> dict[UUID, Item]:
        """What there is now; only these items differ from before, and of that case what is gone or was made."""
        after = house.items(self.sees)
        for key in before.keys() | after.keys():
            old, new = before.get(key), after.get(key)
            if old == new or key in allowed:
                continue
            found = new or old
            assert found is not None and case is not None and found.root_id == case, f"{key}: expected no change, found {old} -> {new}"
            assert old is None or new is None, f"{key}: expected no change but its end, found {old} -> {new}"
            assert new is None or new[1:4] == ("available", 0, 0), f"{key}: expected a new item to be free, found {new}"
        self.lives_follow_the_maps()
        return after

    @invariant()
    def what_must_be(self) -> None:
        assert not (found := house.wrong(self.sees)), found

    @invariant()
    def lives_follow_the_maps(self) -> None:
        now = house.items(self.sees)
        for key, item in now.items():
            old = self.numbers.get(key)
            lives = DELIVERY if item.table == "delivery" else WORK
            assert item.status in lives
            assert 0 <= item.attempts <= item.maximum, item
            if old is not None and old != item:
                assert item.number in (old.number, old.number + 1), f"{key}: {old} -> {item}"
                assert (item.number > old.number) == (item.status == "leased" and old.status == "available"), f"{key}: {old} -> {item}"
                assert item.status == old.status or item.status in lives[old.status], f"{key}: {old} -> {item}"
        self.numbers = now
        seen = {key: task.status for key, task in house.tasks(self.sees).items()}
        for key, status in self.task_seen.items():
            assert key in seen and (seen[key] == status or seen[key] in USER_TASK[status]), f"task {key}: {status} -> {seen.get(key)}"
        self.task_seen = seen

    # ---- what is asked again

    @precondition(lambda self: self.doubts)
    @rule(which=INDEX)
    def ask_again(self, which: int) -> None:
        doubt = self.doubts.pop(which % len(self.doubts))
        self.met["asked again later"] += 1
        doubt.answered(self.do("people", doubt.call))

    @initialize(keys=st.lists(st.sampled_from(house.KEYS), min_size=4, max_size=7))
    def some_cases(self, keys: list[str]) -> None:
        for key in keys:
            self.start(key, "", 1, "now")

    @precondition(lambda self: len(self.started) < MOST_CASES)
    @rule(key=st.sampled_from(house.KEYS), fault=FAULTS, passage=PASSAGES, again=AGAIN)
    def start(self, key: str, fault: str, passage: int, again: str) -> None:
        request = f"start-{self.number()}"
        before = house.items(self.sees)

        def call(conn: Connection) -> Any:
            return start_instance(conn, key, actor=ADA, variables={}, business_key=request, request_id=request)

        def answered(outcome: Any) -> None:
            assert isinstance(outcome, InstanceStarted), outcome
            assert self.started.setdefault(request, outcome.instance_id) == outcome.instance_id

        outcome = self.do("people", call, fault, passage, again)
        if outcome is UNKNOWN:
            self.doubts.append(Doubt(call, answered))
            return
        answered(outcome)
        self.only(before, case=outcome.instance_id)

    def teardown(self) -> None:
        try:
            self.drain()
        finally:
            self.leave()

    def leave(self) -> None:
        self._patch.__exit__(None, None, None)
        for conn in (self.sees, *self.at.values()):
            conn.close()
        self.databases.take_back(self.url)

    def drain(self) -> None:
        """rules.py"""


def done(outcome: Any) -> bool:
    return not isinstance(outcome, Rejected) and outcome is not UNKNOWN
