"""What the core wants changed as parameters of the writing statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from engine.core.effects import Effects, Event, Home
from engine.core.lifecycle import SUSPENDED
from engine.db import single_rows
from engine.db.documents import document
from engine.db.mix import Mix
from engine.db.single_rows import ids
from engine.db.statements import STARTS
from engine.ids import new_id
from engine.text import shortened, sort_key

if TYPE_CHECKING:
    from engine.db.apply import Change

ERROR_LENGTH = 2_000
"""Characters of an incident's message. What is longer is cut; the incident still exists."""

# Events that say what the actor did; all others are the engine's own doing.
_PERSONAL = frozenset(
    {"instance_started", "instance_cancelled", "task_completed", "variables_set", "message_correlated", "incident_resolved"}
)


def parameters_of(change: Change, mix: Mix) -> dict[str, Any]:
    """Every parameter that the statements of `mix` may name."""
    snapshot, effects = change.snapshot, change.effects
    rows = _own_rows if not effects.homes else partial(_rows_of_several, effects.homes, _own_home(change))
    event = _event if not effects.homes else _event_of_several
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
        "held": "suspended" if change.mark in SUSPENDED else None,
        "history": document(rows([event(each, change.actor) for each in effects.history])),
    }
    for fill in _fills(mix):
        fill(parameters, effects, rows)
    if change.leaf == "user_task" or effects.cancelled_tasks:
        own = [change.leaf_id] if change.leaf == "user_task" and change.leaf_id is not None else []
        parameters["unlisted"] = ids([*own, *effects.cancelled_tasks])
        # Only who cancels the case has cancelled its tasks; who completes one task has not cancelled the others.
        parameters["withdrawn_by"] = change.actor if change.leaf == "instance" else "engine"
    if effects.new_instances:
        own_too = {} if change.leaf not in STARTS else {snapshot.definition_id: change.leaf == "start_newest"}
        called = {**change.called, **own_too}
        parameters["called"] = sorted(called)
        parameters["called_newest"] = [definition for definition, newest in called.items() if newest]
    return parameters


# ---- whose rows they are

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


# ---- one kind of row each


def _ended(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["ended"] = e.ended
    p["final"] = document(dict(e.final_variables or {}))


def _scopes(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["scopes"] = document(rows(e.new_scopes))


def _tokens(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["tokens"] = document(rows(e.new_tokens))


def _counters(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["counters"] = document([{"id": scope, "counters": counters} for scope, counters in e.counters.items()])


def _moved_one(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    token = e.moved_tokens[0]
    p.update(moved_token=token.id, to_element=token.element_id, to_flow=token.flow_id, to_status=token.status)


def _variables(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["variables"] = document([(scope, name, v.type, v.value) for (scope, name), v in e.variables.items()])


def _variable(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    ((scope, name), variable) = next(iter(e.variables.items()))
    single_rows.of_variable(p, scope, name, variable)


def _tasks(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    tasks = []
    for task in e.tasks:
        row: dict[str, Any] = {name: getattr(task, name) for name in task.__slots__}
        row["sort_key"] = sort_key(task.name)
        tasks.append(row)
    p["tasks"] = document(rows(tasks))


def _entries(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    found = [(task.id, "user", name) for task in e.tasks for name in task.candidate_users]
    found += [(task.id, "group", name) for task in e.tasks for name in task.candidate_groups]
    p["entries"] = document(list(dict.fromkeys(found)))


def _subscriptions(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    p["subscriptions"] = document(rows(e.subscriptions))
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
    p["incidents"] = document(rows(incidents))


def _resolved(p: dict[str, Any], e: Effects, rows: _Rows) -> None:
    # A token that fails again keeps its row, which the incidents member rewrites: one row, one member.
    again = {incident.token_id for incident in e.incidents}
    p["resolved"] = [token for token in e.resolved_incidents_of if token not in again]


_Fill = Callable[[dict[str, Any], Effects, _Rows], None]

# By the field of Mix that wants it; after that what a row alone needs instead, where that differs.
_FILLS: tuple[tuple[str, _Fill, _Fill | None], ...] = (
    ("ended", _ended, None),
    ("calls", lambda p, e, rows: p.update(instances=document(e.new_instances)), None),
    ("returns", lambda p, e, rows: p.update(ended_instances=document(e.ended_instances)), None),
    ("scopes", _scopes, lambda p, e, rows: single_rows.of_scope(p, e.new_scopes[0])),
    ("counters", _counters, None),
    ("gone_scopes", lambda p, e, rows: p.update(gone_scopes=ids(e.gone_scopes)), None),
    ("tokens", _tokens, lambda p, e, rows: single_rows.of_token(p, e.new_tokens[0])),
    ("moved", lambda p, e, rows: p.update(moved=document(e.moved_tokens)), _moved_one),
    ("gone_tokens", lambda p, e, rows: p.update(gone_tokens=ids(e.gone_tokens)), None),
    ("memories", lambda p, e, rows: p.update(memories=document([{"id": t, "memory": m} for t, m in e.memories.items()])), None),
    ("variables", _variables, _variable),
    ("tasks", _tasks, lambda p, e, rows: single_rows.of_task(p, e.tasks[0])),
    ("entries", _entries, None),
    ("cancelled", lambda p, e, rows: p.update(cancelled=ids(e.cancelled_tasks)), None),
    ("jobs", lambda p, e, rows: p.update(jobs=document(rows(e.jobs))), lambda p, e, rows: single_rows.of_job(p, e.jobs[0])),
    ("external_tasks", lambda p, e, rows: p.update(external_tasks=document(rows(e.external_tasks))), None),
    ("subscriptions", _subscriptions, None),
    ("gone_subscriptions", lambda p, e, rows: p.update(gone_subscriptions=ids(e.gone_subscriptions)), None),
    ("throws", lambda p, e, rows: p.update(throws=document(e.throws)), None),
    ("deliveries", lambda p, e, rows: p.update(deliveries=document(rows(e.deliveries))), None),
    ("fires", _firing, None),
    ("incidents", _incidents, None),
    ("resolved", _resolved, None),
    ("forgets", lambda p, e, rows: p.update(forgotten=[each.id for each in e.ended_instances]), None),
    ("executions", lambda p, e, rows: p.update(executions=document(rows(e.new_executions))), None),
    ("moved_executions", lambda p, e, rows: p.update(moved_executions=document(e.moved_executions)), None),
    ("handed_over", lambda p, e, rows: p.update(handed_over=document(e.handed_over)), None),
    (
        "gone_executions",
        lambda p, e, rows: p.update(gone_executions=e.gone_executions, forgotten_scopes=e.forgotten_scopes),
        None,
    ),
)


@lru_cache(maxsize=512)
def _fills(mix: Mix) -> tuple[_Fill, ...]:
    found = []
    for name, several, alone in _FILLS:
        number = getattr(mix, name)
        if number:
            found.append(alone if alone is not None and number == 1 else several)
    return tuple(found)


# ---- history


def _event(event: Event, actor: str) -> tuple[Any, ...]:
    """kind, element, actor, item and data of an event, in the order in which the statement takes them."""
    data = event.data
    item_id = None
    if "item_id" in data:
        item_id = data["item_id"]
        data = {name: value for name, value in data.items() if name != "item_id"}
    return event.kind, event.element_id, actor if event.kind in _PERSONAL else "engine", item_id, data


def _event_of_several(event: Event, actor: str) -> dict[str, Any]:
    """The same by name, and of which instance."""
    kind, element_id, by, item_id, data = _event(event, actor)
    row = {"kind": kind, "element_id": element_id, "actor": by, "item_id": item_id, "data": data}
    return row if event.instance_id is None else {**row, "instance_id": event.instance_id}
