"""Write what the core wants changed: effects into parameters, one statement (two at most), and then the message keys.

The statements are composed in `statements.py`; the guards are those of `locks.py`. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import orjson
import psycopg

from engine.bpmn.definition import ProcessDefinition
from engine.core.effects import Effects, Event, Home, InvariantBroken
from engine.core.known import Call
from engine.core.snapshot import Snapshot
from engine.db.locks import KEYS, TAKE_MESSAGE, TURN, TURN_AND_KEYS
from engine.db.prepared import Statements
from engine.db.session import cursor_of
from engine.db.statements import STARTS, Mix, together, writing_statements
from engine.ids import new_id
from engine.text import shortened, sort_key

ERROR_LENGTH = 2_000
"""Characters of an incident's message. What is longer is cut; the incident still exists."""

MOST_CALLS = 4  # of `execute` a command may make; what would be more goes in one (statements.together)

# Events that say what the actor did; all others are the engine's own doing.
_PERSONAL = frozenset(
    {"instance_started", "instance_cancelled", "task_completed", "variables_set", "message_correlated", "incident_resolved"}
)


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

    _statements: tuple[str, ...] | None = None  # composed once the effects are complete

    @property
    def statements(self) -> tuple[str, ...]:
        """The writing statements; from here on the effects may not gain another kind of row."""
        if self._statements is None:
            self._statements = writing_statements(self.mix)
        return self._statements

    @property
    def mix(self) -> Mix:
        e = self.effects
        return Mix(
            leaf=self.leaf,
            ended=e.ended is not None,
            calls=bool(e.new_instances),
            returns=bool(e.ended_instances),
            several=bool(e.homes),
            scopes=bool(e.new_scopes),
            gone_scopes=bool(e.gone_scopes),
            counters=bool(e.counters),
            tokens=bool(e.new_tokens),
            moved=2 if any(t.memory for t in e.moved_tokens) else min(len(e.moved_tokens), 2),
            gone_tokens=bool(e.gone_tokens),
            remember=any(t.memory for t in e.new_tokens) or any(t.memory for t in e.moved_tokens),
            memories=bool(e.memories),
            variables=bool(e.variables),
            tasks=bool(e.tasks),
            cancelled=bool(e.cancelled_tasks),
            jobs=bool(e.jobs),
            external_tasks=bool(e.external_tasks),
            exclusive=e.exclusive,
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
            keys_later=self.takes_message is not None or self.passes_turn,
            alone="gateway" in self.parameters,
            request=self.request,
        )

    @property
    def passes_turn(self) -> bool:
        """Whether exclusive work of the case may be the next one's turn after this write; an ended case has none."""
        return self.effects.ended is None and (self.snapshot.takes_turns or self.effects.exclusive)

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


def write(conn: psycopg.Connection[Any], change: Change) -> datetime | None:
    """Write everything; returns when (the database's clock), or None if a guard found the world moved on: nothing is written.

    With `change.must_lock_first` the caller has a transaction open and holds the root; otherwise autocommit will do.
    """
    change.effects.check()
    statements, parameters = change.statements, _parameters(change)
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


# ---- effects into parameters


def _parameters(change: Change) -> dict[str, Any]:
    snapshot, effects = change.snapshot, change.effects
    rows = _own_rows if not effects.homes else partial(_rows_of_several, effects.homes, _own_home(change))
    parameters: dict[str, Any] = {
        **change.parameters,
        "root_id": snapshot.root_id,
        "revision": snapshot.revision,
        "mark": change.mark,
        "leaf_id": change.leaf_id,
        "fence": change.fence,
        "actor": change.actor,
        "tenant_id": snapshot.tenant_id,
        "instance_id": snapshot.instance_id,
        "definition_id": snapshot.definition_id,
        "definition_key": change.definition.key,
        "process_name": change.definition.name,
        "business_key": snapshot.business_key,
        "held": "suspended" if change.mark in ("suspending", "suspended") else None,
        "history": _document(rows([_event(event, change.actor) for event in effects.history])),
    }
    for wanted, fill in _FILLS:
        if wanted(effects):
            fill(parameters, effects, rows)
    if change.leaf == "user_task" or effects.cancelled_tasks:
        own = [change.leaf_id] if change.leaf == "user_task" and change.leaf_id is not None else []
        parameters["unlisted"] = _ids([*own, *effects.cancelled_tasks])
        # Only who cancels the case has cancelled its tasks; who completes one task has not cancelled the others.
        parameters["withdrawn_by"] = change.actor if change.leaf == "instance" else "engine"
    if effects.new_instances:
        own_too = {} if change.leaf not in STARTS else {snapshot.definition_id: change.leaf == "start_newest"}
        called = {**change.called, **own_too}
        parameters["called"] = sorted(called)
        parameters["called_newest"] = [definition for definition, newest in called.items() if newest]
    return parameters


_Rows = Callable[[Sequence[Any]], Sequence[Any]]


def _own_rows(rows: Sequence[Any]) -> Sequence[Any]:
    """All of one instance: the statement says which."""
    return rows


def _rows_of_several(homes: Mapping[UUID, Home], own: Home, rows: Sequence[Any]) -> Sequence[Any]:
    """Each row with the instance that it belongs to."""
    return [{**row, **_columns(homes.get(_place(row), own))} for row in map(_named, rows)]


def _named(row: Any) -> Mapping[str, Any]:
    return row if isinstance(row, dict) else {name: getattr(row, name) for name in row.__slots__}


def _place(row: Mapping[str, Any]) -> Any:
    """What says where a row belongs: an event's or delivery's instance, a leaf's token; tokens and scopes themselves."""
    if "instance_id" in row:
        return row["instance_id"]
    return row["token_id"] if "token_id" in row and "path" not in row else row.get("id")


def _columns(home: Home) -> dict[str, Any]:
    return {name: getattr(home, name) for name in home.__slots__}


def _own_home(change: Change) -> Home:
    snapshot = change.snapshot
    return Home(snapshot.instance_id, snapshot.definition_id, change.definition.name, snapshot.business_key)


def _ended(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["ended"] = e.ended
    p["final"] = _document(dict(e.final_variables or {}))


def _instances(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["instances"] = _document(e.new_instances)


def _counters(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["counters"] = _document([{"id": scope, "counters": counters} for scope, counters in e.counters.items()])


def _moved(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    if len(e.moved_tokens) > 1 or e.moved_tokens[0].memory:
        p["moved"] = _document(e.moved_tokens)
        return
    token = e.moved_tokens[0]
    p.update(moved_token=token.id, to_element=token.element_id, to_flow=token.flow_id, to_status=token.status)


def _variables(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["variables"] = _document(
        [{"scope_id": scope, "name": name, "type": v.type, "value": v.value} for (scope, name), v in e.variables.items()]
    )


def _tasks(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    tasks = []
    for task in e.tasks:
        row: dict[str, Any] = {name: getattr(task, name) for name in task.__slots__}
        row["sort_key"] = sort_key(task.name)
        tasks.append(row)
    p["tasks"] = _document(rows(tasks))


def _subscriptions(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["subscriptions"] = _document(rows(e.subscriptions))
    p["subscription_ids"] = [subscription.id for subscription in e.subscriptions]
    p["job_ids"] = [new_id() for _ in e.subscriptions]


def _firing(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    assert e.firing is not None, "it is wanted"
    p.update(schedule_id=e.firing.schedule_id, was_due_at=e.firing.due_at, missed=e.firing.missed)


def _incidents(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    incidents = [
        {
            "id": incident.id,
            "kind": incident.kind,
            "message": shortened(incident.message, ERROR_LENGTH),
            "token_id": incident.token_id,
            "element_id": incident.element_id,
        }
        for incident in e.incidents
    ]
    p["incidents"] = _document(rows(incidents))


def _resolved(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    # A token that fails again keeps its row, which the incidents member rewrites: one row, one member.
    again = {incident.token_id for incident in e.incidents}
    p["resolved"] = [token for token in e.resolved_incidents_of if token not in again]


_FILLS: tuple[tuple[Callable[[Effects], Any], Callable[[dict[str, Any], Effects, _Rows], None]], ...] = (
    (lambda e: e.ended, _ended),
    (lambda e: e.new_instances, _instances),
    (lambda e: e.ended_instances, lambda p, e, rows: p.update(ended_instances=_document(e.ended_instances))),
    (lambda e: e.new_scopes, lambda p, e, rows: p.update(scopes=_document(rows(e.new_scopes)))),
    (lambda e: e.counters, _counters),
    (lambda e: e.gone_scopes, lambda p, e, rows: p.update(gone_scopes=_ids(e.gone_scopes))),
    (lambda e: e.new_tokens, lambda p, e, rows: p.update(tokens=_document(rows(e.new_tokens)))),
    (lambda e: e.moved_tokens, _moved),
    (lambda e: e.gone_tokens, lambda p, e, rows: p.update(gone_tokens=_ids(e.gone_tokens))),
    (lambda e: e.memories, lambda p, e, rows: p.update(memories=_document([{"id": t, "memory": m} for t, m in e.memories.items()]))),
    (lambda e: e.variables, _variables),
    (lambda e: e.tasks, _tasks),
    (lambda e: e.cancelled_tasks, lambda p, e, rows: p.update(cancelled=_ids(e.cancelled_tasks))),
    (lambda e: e.jobs, lambda p, e, rows: p.update(jobs=_document(rows(e.jobs)))),
    (lambda e: e.external_tasks, lambda p, e, rows: p.update(external_tasks=_document(rows(e.external_tasks)))),
    (lambda e: e.subscriptions, _subscriptions),
    (lambda e: e.gone_subscriptions, lambda p, e, rows: p.update(gone_subscriptions=_ids(e.gone_subscriptions))),
    (lambda e: e.throws, lambda p, e, rows: p.update(throws=_document(e.throws))),
    (lambda e: e.deliveries, lambda p, e, rows: p.update(deliveries=_document(rows(e.deliveries)))),
    (lambda e: e.firing, _firing),
    (lambda e: e.incidents, _incidents),
    (lambda e: e.resolved_incidents_of, _resolved),
    (lambda e: e.forgets, lambda p, e, rows: p.update(forgotten=[each.id for each in e.ended_instances])),
    (lambda e: e.new_executions, lambda p, e, rows: p.update(executions=_document(rows(e.new_executions)))),
    (lambda e: e.moved_executions, lambda p, e, rows: p.update(moved_executions=_document(e.moved_executions))),
    (lambda e: e.handed_over, lambda p, e, rows: p.update(handed_over=_document(e.handed_over))),
    (
        lambda e: e.gone_executions or e.forgotten_scopes,
        lambda p, e, rows: p.update(gone_executions=e.gone_executions, forgotten_scopes=e.forgotten_scopes),
    ),
)


def _event(event: Event, actor: str) -> dict[str, Any]:
    data = event.data
    row: dict[str, Any] = {
        "kind": event.kind,
        "element_id": event.element_id,
        "actor": actor if event.kind in _PERSONAL else "engine",
        "data": data,
    }
    if "item_id" in data:
        row["item_id"] = data["item_id"]
        row["data"] = {name: value for name, value in data.items() if name != "item_id"}
    if event.instance_id is not None:
        row["instance_id"] = event.instance_id
    return row


def _ids(ids: Iterable[UUID]) -> str:
    """An array as the server writes it; the driver would look at each element first."""
    return f"{{{','.join(map(str, ids))}}}"


def _document(rows: Any) -> str:
    return orjson.dumps(rows, default=_plain).decode()


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return dict(value)
        case Decimal():
            return float(value)
        case set() | frozenset():
            return sorted(value)
    raise TypeError(f"expected a JSON value, found {type(value).__name__}")
