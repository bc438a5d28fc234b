"""Write what the core wants changed: one statement (two at most), and then the message keys.

The statements are composed in `statements.py`, their parameters in `parameters.py`; the guards are those of `locks.py`. Nothing here
decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from engine.bpmn.definition import ProcessDefinition
from engine.core.effects import Effects, InvariantBroken
from engine.core.known import Call
from engine.core.snapshot import Snapshot
from engine.db.locks import KEYS, TAKE_MESSAGE, TURN, TURN_AND_KEYS
from engine.db.mix import Mix
from engine.db.parameters import parameters_of
from engine.db.prepared import Statements
from engine.db.session import cursor_of
from engine.db.statements import fitting, together, writing_statements
from engine.ids import new_id

MOST_CALLS = 4  # of `execute` a command may make; what would be more goes in one (statements.together)


class MessageGone(Exception):
    """The stored message that a delivery looked at was gone when it was to be taken: roll back and look again."""


@dataclass(slots=True)
class Change:
    """One write: the leaf that triggered and its fence, the case as it was read, what the core answered, and who acts.

    `leaf`: a key of locks.LEAF, or start | start_by_job. `request`: text of the request member, whose parameters are
    `parameters` (with the encoded outcome). `takes_message`: a stored message is consumed at the end.
    """

    leaf: str
    leaf_id: UUID | None
    fence: str | int | None
    snapshot: Snapshot
    definition: ProcessDefinition
    effects: Effects
    actor: str
    mark: str | None = None
    request: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    takes_message: UUID | None = None
    start_subscription: UUID | None = None  # which received it, and stays
    called: Mapping[UUID, bool] = field(default_factory=dict)  # definitions that are called; whether as the newest of their key
    calls: tuple[Call, ...] = ()  # what calls meant them, for a look anew

    _mix: Mix | None = None  # once the effects are complete
    _statements: tuple[str, ...] | None = None

    @property
    def statements(self) -> tuple[str, ...]:
        """The writing statements; from here on the effects may not gain a row."""
        if self._statements is None:
            self._statements = writing_statements(self.written)
        return self._statements

    @property
    def written(self) -> Mix:
        """The mix that the statements are of."""
        if self._mix is None:
            self._mix = fitting(self.mix)
        return self._mix

    @property
    def mix(self) -> Mix:
        e = self.effects
        several, exclusive = bool(e.homes), e.exclusive
        new_tokens = _number(e.new_tokens, several)
        moved_memory = bool(e.moved_tokens) and any(t.memory for t in e.moved_tokens)
        remember = moved_memory or (bool(e.new_tokens) and any(t.memory for t in e.new_tokens))
        begun = {scope.id for scope in e.new_scopes} if e.variables else ()
        return Mix(
            leaf=self.leaf,
            ended=e.ended is not None,
            calls=bool(e.new_instances),
            returns=bool(e.ended_instances),
            several=several,
            scopes=_number(e.new_scopes, several),
            gone_scopes=bool(e.gone_scopes),
            counters=bool(e.counters),
            tokens=2 if remember and new_tokens else new_tokens,
            moved=2 if moved_memory else min(len(e.moved_tokens), 2),
            gone_tokens=bool(e.gone_tokens),
            remember=remember,
            memories=bool(e.memories),
            variables=_number(e.variables, several),
            fresh=bool(begun) and all(scope in begun for scope, _ in e.variables),
            tasks=_number(e.tasks, several),
            entries=bool(e.tasks) and any(task.candidate_users or task.candidate_groups for task in e.tasks),
            cancelled=bool(e.cancelled_tasks),
            jobs=_number(e.jobs, several or exclusive),
            external_tasks=bool(e.external_tasks),
            exclusive=exclusive,
            subscriptions=bool(e.subscriptions),
            gone_subscriptions=bool(e.gone_subscriptions),
            deliveries=bool(e.deliveries),
            throws=bool(e.throws),
            fires=e.firing is not None,
            incidents=bool(e.incidents),
            resolved=bool(e.resolved_incidents_of),
            executions=bool(e.new_executions),
            moved_executions=bool(e.moved_executions),
            handed_over=bool(e.handed_over),
            gone_executions=bool(e.gone_executions or e.forgotten_scopes),
            forgets=e.forgets,
            keys_later=self.takes_message is not None or self._passes_turn(exclusive),
            receipt="receipt" in self.parameters,
            alone="gateway" in self.parameters,
            request=self.request,
        )

    @property
    def passes_turn(self) -> bool:
        """Whether exclusive work of the case may be the next one's turn after this write; an ended case has none."""
        return self._passes_turn(self.written.exclusive)

    def _passes_turn(self, exclusive: bool) -> bool:
        return self.effects.ended is None and (self.snapshot.takes_turns or exclusive)

    @property
    def must_lock_first(self) -> bool:
        """Whether the optimistic write is out of the question, or would lose too often.

        A look must follow a lock (subscriptions, exclusive work), other tokens' rows are touched (by conditions too), the token has
        siblings (those in the iterations of a loop are counted there), or the write does not fit one statement.
        """
        e = self.effects
        return bool(
            e.subscriptions
            or e.gone_subscriptions
            or e.cancelled_tasks
            or self.takes_message
            or len(e.gone_tokens) > 1
            or self.snapshot.crowded
            or self.passes_turn
            or e.counters
            or e.memories
            or len(self.statements) > 1
        )


def _number(rows: Sized, several: bool) -> int:
    """0, 1, or 2 for more; rows of several instances are never alone."""
    number = len(rows)
    return number if number == 0 or (number == 1 and not several) else 2


def write(conn: psycopg.Connection[Any], change: Change) -> datetime | None:
    """Write everything; returns when (the database's clock), or None if a guard found the world moved on: nothing is written.

    With `change.must_lock_first` the caller has a transaction open and holds the root; otherwise autocommit will do.
    """
    change.effects.check()
    statements, parameters = change.statements, parameters_of(change, change.written)
    cursor = cursor_of(conn)
    takes_message = change.takes_message is not None
    last = _last(change)
    calls = len(statements) + bool(last) + takes_message
    all_at_once = len(statements) + bool(last) > 1 and cursor.executed + calls > MOST_CALLS
    if all_at_once:
        row = cursor.execute_together(together((*statements, last) if last else statements), parameters).fetchone()
    else:
        row = cursor.execute(statements[0], parameters).fetchone()
    if row is None:
        return None
    at: datetime = row[0]
    _expect_withdrawn(change.effects, row[1])
    if not all_at_once:
        for statement in statements[1:]:
            cursor.execute(statement, {**parameters, "at": at})
        if last:
            cursor.execute(last, parameters)
    if takes_message:
        _take_message(cursor, change, parameters)
    return at


def _last(change: Change) -> str:
    """What comes after the write: the next turn, and then the keys of new subscriptions, if these are not taken elsewhere."""
    turn = change.passes_turn
    keys = bool(change.effects.subscriptions) and change.takes_message is None and (turn or len(change.statements) == 1)
    return TURN_AND_KEYS if turn and keys else TURN if turn else KEYS if keys else ""


def _take_message(cursor: Statements, change: Change, parameters: Mapping[str, Any]) -> None:
    opened = parameters.get("subscription_ids", []), parameters.get("job_ids", [])
    row = cursor.execute(TAKE_MESSAGE, (change.takes_message, *opened, change.start_subscription, new_id())).fetchone()
    # Re-check after the lock: the message may have been taken, or have expired, while we waited.
    if row is None or not row[0]:
        raise MessageGone(f"message {change.takes_message}: taken by somebody else, or expired")


def _expect_withdrawn(effects: Effects, withdrawn: int) -> None:
    if withdrawn != len(effects.cancelled_tasks):
        raise InvariantBroken(f"cancelled tasks: expected {len(effects.cancelled_tasks)} open or claimed, found {withdrawn}")
