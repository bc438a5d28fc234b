"""The writing statement with each of its guards stale writes nothing, in any table, whatever it was to write.

A member that does not join the guard runs even when the guard found nothing, so each member is tried alone, and each kind
of leaf with everything that may have changed since it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from engine.bpmn.definition import ProcessDefinition
from engine.core.effects import (
    Effects,
    EndedInstance,
    Event,
    HandedOver,
    Home,
    MovedExecution,
    MovedToken,
    NewDelivery,
    NewExecution,
    NewExternalTask,
    NewIncident,
    NewInstance,
    NewJob,
    NewScope,
    NewSubscription,
    NewTask,
    NewToken,
)
from engine.core.snapshot import Snapshot
from engine.core.values import Variable
from engine.db import locks, statements
from engine.db.apply import Change, write
from engine.ids import new_id
from tests import rows

Connection = psycopg.Connection[Any]
DEFINITION = ProcessDefinition("invoice", "Invoice", {}, {}, {})
LEASED = {"status": "leased", "lease_owner": "w", "lease_number": 3, "attempts": 1}
IN_LEASE = "UPDATE {} SET status = 'leased', lease_owner = 'w', lease_number = 3, attempts = 1, leased_at = baton_clock(),"
IN_LEASE += " lease_expires_at = baton_clock() + interval '30 seconds' WHERE id = %s"


@dataclass
class Case:
    """A case with a token for each thing that a write may do. `parameters`: what the leaf's guard needs besides."""

    conn: Connection
    id: UUID
    root: UUID
    definition: UUID
    scope: UUID
    tokens: dict[str, UUID]
    inner: UUID
    other_task: UUID
    child: UUID
    executions: tuple[UUID, UUID] = (UUID(int=0), UUID(int=0))  # in the scope, and in the inner one
    open_subscription: UUID | None = None
    leaf: UUID | None = None
    fence: Any = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def change(self, leaf: str, effects: Effects) -> Change:
        found = self.conn.execute("SELECT revision FROM process_instance WHERE id = %s", (self.root,)).fetchone()
        revision = found[0] if found else 0
        snapshot = Snapshot("", self.id, self.root, self.definition, None, revision, {}, {})
        called = {instance.definition_id: True for instance in effects.new_instances}
        return Change(leaf, self.leaf, self.fence, snapshot, DEFINITION, effects, "ada", parameters=self.parameters, called=called)

    def do(self, query: str, *values: Any) -> None:
        assert self.conn.execute(query, values).rowcount == 1, query


def case(conn: Connection, *, called: bool = False) -> Case:
    definition = rows.definition(conn, f"key-{new_id()}")
    root = rows.instance(conn, definition)
    key = rows.instance(conn, definition, root_id=root) if called else root
    names = ("leaf", "moved", "other", "with_task", "gone", "stuck", "holder")
    tokens = {name: rows.token(conn, key) for name in names}
    scope = rows.one(conn, "SELECT id FROM scope WHERE instance_id = %s", key)
    inner = new_id()
    rows.insert(conn, "scope", id=inner, instance_id=key, parent_id=scope, token_id=tokens["holder"], path=[scope, inner])
    task = rows.task(conn, key, token_id=tokens["with_task"])
    rows.insert(conn, "incident", kind="no_flow", message="?", instance_id=key, root_id=root, token_id=tokens["stuck"])
    child = rows.instance(conn, definition, root_id=root, parent_id=key)
    execution = {"instance_id": key, "element_id": "a", "number": 1}
    executions = tuple(rows.insert(conn, "completed_execution", scope_id=place, **execution) for place in (scope, inner))
    case = {"instance_id": key, "root_id": root, "definition_id": definition, "token_id": tokens["other"]}
    waits = rows.insert(conn, "subscription", kind="catch", message_name="N", element_id="other", **case)
    return Case(conn, key, root, definition, scope, tokens, inner, task, child, executions, waits)


# ---- what a write may do, each alone


def _effects(at: Case, **found: Any) -> Effects:
    return Effects(history=[Event("element_left", "check")], **found)


def _task(at: Case) -> NewTask:
    return NewTask(new_id(), at.tokens["moved"], "b", "B", None, ("ada",), ("billing",), 50, None, None, "")


def _elsewhere(at: Case) -> Effects:
    """Rows of an instance that is not the leaf's."""
    found = _effects(at, tasks=[_task(at)], homes={at.tokens["moved"]: Home(at.child, at.definition, "Called", "k")})
    found.history.append(Event("element_entered", "b", instance_id=at.child))
    return found


def _new_instance(at: Case) -> NewInstance:
    return NewInstance(new_id(), at.definition, at.id, at.tokens["moved"], "k", "ada")


MEMBERS: Mapping[str, tuple[Callable[[Case], Effects], str]] = {
    "history": (_effects, "history"),
    "scope": (lambda c: _effects(c, new_scopes=[NewScope(new_id(), c.scope, c.tokens["moved"], "sub", (c.scope, new_id()))]), "scope"),
    "gone scope": (lambda c: _effects(c, gone_scopes=[c.inner]), "scope"),
    "token": (lambda c: _effects(c, new_tokens=[NewToken(new_id(), c.scope, "b", None, "waiting")]), "token"),
    "moved": (lambda c: _effects(c, moved_tokens=[MovedToken(c.tokens["moved"], "b", "f", "joining")]), "token"),
    "two moved": (
        lambda c: _effects(c, moved_tokens=[MovedToken(c.tokens[name], "b", "f", "joining") for name in ("moved", "other")]),
        "token",
    ),
    "new memory": (lambda c: _effects(c, new_tokens=[NewToken(new_id(), c.scope, "b", None, "waiting", {"x": 1})]), "token"),
    "moved memory": (lambda c: _effects(c, moved_tokens=[MovedToken(c.tokens["moved"], "b", "f", "waiting", {"x": 1})]), "token"),
    "memory": (lambda c: _effects(c, memories={c.tokens["other"]: {"x": 1}}), "token"),
    "gone token": (lambda c: _effects(c, gone_tokens=[c.tokens["gone"]]), "token"),
    "variable": (lambda c: _effects(c, variables={(c.scope, "x"): Variable("integer", 1)}), "variable"),
    "task": (lambda c: _effects(c, tasks=[_task(c)]), "user_task"),
    "inbox": (lambda c: _effects(c, tasks=[_task(c)]), "inbox_entry"),
    "cancelled task": (lambda c: _effects(c, cancelled_tasks=[c.other_task]), "user_task"),
    "unlisted": (lambda c: _effects(c, cancelled_tasks=[c.other_task]), "inbox_entry"),
    "job": (lambda c: _effects(c, jobs=[NewJob(new_id(), "service", "score", c.tokens["moved"], "b")]), "job"),
    "external task": (lambda c: _effects(c, external_tasks=[NewExternalTask(new_id(), "x", c.tokens["moved"], "b")]), "external_task"),
    "subscription": (lambda c: _effects(c, subscriptions=[NewSubscription(new_id(), c.tokens["moved"], "b", "M", "k")]), "subscription"),
    "gone subscription": (lambda c: _effects(c, gone_subscriptions=[c.open_subscription]), "subscription"),
    "delivery": (lambda c: _effects(c, deliveries=[NewDelivery(new_id(), "http", "x", "b", {})]), "delivery"),
    "incident": (lambda c: _effects(c, incidents=[NewIncident(new_id(), c.tokens["moved"], "b", "no_flow", "?")]), "incident"),
    "resolved": (lambda c: _effects(c, resolved_incidents_of=[c.tokens["stuck"]]), "incident"),
    "execution": (lambda c: _effects(c, new_executions=[NewExecution(new_id(), c.scope, None, "a", 1, {})]), "completed_execution"),
    "moved execution": (
        lambda c: _effects(c, moved_executions=[MovedExecution(c.executions[0], c.inner, None)]),
        "completed_execution",
    ),
    "handed over": (lambda c: _effects(c, handed_over=[HandedOver(c.scope, None, c.executions[1])]), "completed_execution"),
    "gone execution": (lambda c: _effects(c, gone_executions=[c.executions[0]]), "completed_execution"),
    "forgotten scope": (lambda c: _effects(c, forgotten_scopes=[c.scope]), "completed_execution"),
    "forgets": (lambda c: _effects(c, ended="completed", final_variables={}, forgets=True), "completed_execution"),
    "ended": (lambda c: _effects(c, ended="completed", final_variables={}), "process_instance"),
    "revision": (_effects, "process_instance"),
    "called": (lambda c: _effects(c, new_instances=[_new_instance(c)]), "process_instance"),
    "returned": (lambda c: _effects(c, ended_instances=[EndedInstance(c.child, "completed", {})]), "process_instance"),
    "elsewhere": (_elsewhere, "user_task"),
    # Several of a kind, which come as a document: one alone comes as parameters.
    "scopes": (lambda c: _effects(c, new_scopes=[NewScope(new_id(), c.scope, None, "sub", (c.scope, new_id())) for _ in "ab"]), "scope"),
    "tokens": (lambda c: _effects(c, new_tokens=[NewToken(new_id(), c.scope, "b", None, "waiting") for _ in "ab"]), "token"),
    "variables": (lambda c: _effects(c, variables={(c.scope, name): Variable("integer", 1) for name in "xy"}), "variable"),
    "tasks": (lambda c: _effects(c, tasks=[_task(c), _task(c)]), "user_task"),
    "jobs": (lambda c: _effects(c, jobs=[NewJob(new_id(), "service", "score", c.tokens["moved"], "b") for _ in "ab"]), "job"),
}


# ---- the leaves, and what may have happened to each since it was read


def user_task(at: Case) -> None:
    at.leaf = rows.task(at.conn, at.id, token_id=at.tokens["leaf"], status="claimed", assignee="ada")
    at.fence = "ada"


def leased(table: str) -> Callable[[Case], None]:
    def make(at: Case) -> None:
        at.leaf, at.fence = rows.MAKERS[table](at.conn, at.id, token_id=at.tokens["leaf"]), 3
        at.do(IN_LEASE.format(table), at.leaf)

    return make


def _subscribed(at: Case) -> UUID:
    case = {"instance_id": at.id, "root_id": at.root, "definition_id": at.definition, "token_id": at.tokens["leaf"]}
    return rows.insert(at.conn, "subscription", kind="catch", message_name="M", element_id="check", **case)


def subscription(at: Case) -> None:
    at.leaf = _subscribed(at)


def message_job(at: Case) -> None:
    leased("job")(at)
    at.parameters = {"received_by": _subscribed(at)}


def failed_token(at: Case) -> None:
    at.leaf = at.tokens["leaf"]
    at.do("UPDATE token SET status = 'failed' WHERE id = %s", at.leaf)


def whole_instance(at: Case) -> None:
    at.leaf = at.id


def _with(query: str) -> Callable[[Case], None]:
    """`query` changes the leaf."""
    return lambda at: at.do(query, at.leaf)


FREED = "SET status = 'available', lease_owner = NULL, lease_expires_at = NULL, leased_at = NULL WHERE id = %s"
ROOT_STALE: Mapping[str, Callable[[Case], None]] = {
    "revision": lambda at: at.do("UPDATE process_instance SET revision = revision + 1 WHERE id = %s", at.root),
    "mark": lambda at: at.do("UPDATE process_instance SET mark = 'suspended' WHERE id = %s", at.root),
    "ended": lambda at: at.do("UPDATE process_instance SET status = 'cancelled', ended_at = baton_clock() WHERE id = %s", at.root),
}
LEAVES: Mapping[str, tuple[Callable[[Case], None], Mapping[str, Callable[[Case], None]]]] = {
    "user_task": (
        user_task,
        {
            "given to Bo": _with("UPDATE user_task SET assignee = 'bo' WHERE id = %s"),
            "given back": _with("UPDATE user_task SET status = 'open', assignee = NULL WHERE id = %s"),
            "completed": _with("UPDATE user_task SET status = 'completed', ended_at = baton_clock() WHERE id = %s"),
        },
    ),
    **{
        table: (
            leased(table),
            {
                "leased again": _with(f"UPDATE {table} SET lease_number = 4 WHERE id = %s"),
                "taken back": _with(f"UPDATE {table} {FREED}"),
            },
        )
        for table in ("job", "external_task")
    },
    **{
        bringing: (
            message_job,
            {
                "leased again": _with("UPDATE job SET lease_number = 4 WHERE id = %s"),
                "taken back": _with(f"UPDATE job {FREED}"),
                "received": lambda at: at.do("DELETE FROM subscription WHERE id = %s", at.parameters["received_by"]),
            },
        )
        for bringing in ("message_job", "reception")
    },
    "subscription": (subscription, {"received": _with("DELETE FROM subscription WHERE id = %s")}),
    "token": (failed_token, {"went on": _with("UPDATE token SET status = 'waiting' WHERE id = %s")}),
    "instance": (whole_instance, {}),
}


def test_every_leaf_and_every_way_to_start_is_tried_here() -> None:
    assert set(LEAVES) == set(locks.LEAF)
    assert set(STARTS) | {"start_newest"} == set(statements.STARTS)  # by memory: in a race, tests/races/test_waits.py


def _stale() -> list[Any]:
    return [pytest.param(leaf, why, id=f"{leaf}, {why}") for leaf, (_, others) in LEAVES.items() for why in (*ROOT_STALE, *others)]


@pytest.mark.parametrize(("leaf", "why"), _stale())
def test_R4_a_stale_guard_writes_nothing_whatever_was_to_be_written(committed_db: Connection, leaf: str, why: str) -> None:
    make, others = LEAVES[leaf]
    for called in (False, True):
        at = case(committed_db, called=called)
        make(at)
        changes = [at.change(leaf, effects(at)) for effects, _ in MEMBERS.values()]  # as read before
        {**ROOT_STALE, **others}[why](at)
        before = rows.everything(committed_db)
        for name, change in zip(MEMBERS, changes, strict=True):
            assert write(committed_db, change) is None, name
            assert rows.everything(committed_db) == before, name


@pytest.mark.parametrize("leaf", list(LEAVES))
def test_with_its_guards_fresh_each_member_is_written(committed_db: Connection, leaf: str) -> None:
    for name, (effects, table) in MEMBERS.items():
        at = case(committed_db)
        LEAVES[leaf][0](at)
        before = rows.everything(committed_db)
        assert write(committed_db, at.change(leaf, effects(at))) is not None, name
        assert rows.everything(committed_db)[table] != before[table], name


# ---- what is called


CALLED_STALE = {
    "suspended": "UPDATE process_definition SET status = 'suspended' WHERE id = %s",
    "deleting": "UPDATE process_definition SET status = 'deleting' WHERE id = %s",
}


@pytest.mark.parametrize("why", [*CALLED_STALE, "a newer version"])
@pytest.mark.parametrize("leaf", [*LEAVES, "start", "start_newest", "start_by_job", "start_by_message"])
def test_nothing_is_called_under_a_stale_definition_and_nothing_else_is_written(committed_db: Connection, leaf: str, why: str) -> None:
    """Every called definition is locked and compared, by whatever calls: a step of a case, or a start."""
    starts = leaf.startswith("start")
    at, effects = _new_case(committed_db) if starts else (case(committed_db), Effects())
    if starts:
        {"start_by_job": by_job, "start_by_message": by_message}.get(leaf, lambda _: None)(at)
    else:
        LEAVES[leaf][0](at)
    called = rows.definition(committed_db, "called")
    effects.new_instances.append(NewInstance(new_id(), called, at.id, new_id(), None, "ada"))
    change = at.change(leaf, effects)
    if why in CALLED_STALE:
        at.do(CALLED_STALE[why], called)
    else:
        rows.definition(committed_db, "called", version=2)
    before = rows.everything(committed_db)
    assert write(committed_db, change) is None
    assert rows.everything(committed_db) == before
    change.called = {called: False}  # bound to that version
    assert (write(committed_db, change) is not None) == (why not in CALLED_STALE)


# ---- what starts an instance


def _new_case(conn: Connection) -> tuple[Case, Effects]:
    definition = rows.definition(conn, f"key-{new_id()}")
    key, scope = new_id(), new_id()
    effects = Effects(
        new_scopes=[NewScope(scope, None, None, None, (scope,))],
        new_tokens=[NewToken(new_id(), scope, "check", None, "waiting")],
        history=[Event("instance_started")],
    )
    return Case(conn, key, key, definition, scope, {}, new_id(), new_id(), new_id()), effects


def by_job(at: Case) -> None:
    at.leaf, at.fence = new_id(), 3
    now = rows.one(at.conn, "SELECT baton_clock()")
    row = {"definition_id": at.definition, "element_id": "tick", "due_at": now, "available_at": now}
    rows.insert(at.conn, "job", id=at.leaf, kind="start_timer", **row)
    at.do(IN_LEASE.format("job"), at.leaf)


def by_message(at: Case) -> None:
    at.leaf = rows.insert(at.conn, "subscription", kind="start", message_name="M", definition_id=at.definition, element_id="s")


def by_throw(at: Case) -> None:
    by_job(at)
    at.parameters = {
        "received_by": rows.insert(at.conn, "subscription", kind="start", message_name="M", definition_id=at.definition, element_id="s")
    }


def _suspended(at: Case) -> None:
    at.do("UPDATE process_definition SET status = 'suspended' WHERE id = %s", at.definition)


STARTS: Mapping[str, tuple[Callable[[Case], None], Mapping[str, Callable[[Case], None]]]] = {
    "start": (lambda at: None, {"suspended": _suspended}),
    "start_by_job": (by_job, {"suspended": _suspended, **LEAVES["job"][1]}),
    "start_by_throw": (
        by_throw,
        {
            "suspended": _suspended,
            "replaced": lambda at: at.do("DELETE FROM subscription WHERE id = %s", at.parameters["received_by"]),
            **LEAVES["job"][1],
        },
    ),
    "start_by_message": (
        by_message,
        {"suspended": _suspended, "replaced": _with("DELETE FROM subscription WHERE id = %s")},
    ),
}


@pytest.mark.parametrize(("leaf", "why"), [(leaf, why) for leaf, (_, reasons) in STARTS.items() for why in (*reasons, "")])
def test_nothing_starts_under_a_stale_guard(committed_db: Connection, leaf: str, why: str) -> None:
    make, reasons = STARTS[leaf]
    at, effects = _new_case(committed_db)
    make(at)
    change = at.change(leaf, effects)
    if not why:
        assert write(committed_db, change) is not None
        assert rows.one(committed_db, "SELECT count(*) FROM token") == 1
        return
    reasons[why](at)
    before = rows.everything(committed_db)
    assert write(committed_db, change) is None
    assert rows.everything(committed_db) == before


# ---- the end of a delivery that found nothing to do


@pytest.mark.parametrize("why", ["leased again", "taken back"])
def test_R4_a_delivery_job_that_was_lost_is_not_ended(committed_db: Connection, why: str) -> None:
    at = case(committed_db)
    leased("job")(at)
    LEAVES["job"][1][why](at)
    before = rows.everything(committed_db)
    committed_db.execute(locks.END_DELIVERY, {"item_id": at.leaf, "lease_number": 3, "attempt": 1, "why": "no message"})
    assert rows.everything(committed_db) == before


def test_a_case_that_is_suspended_gets_the_delivery_of_a_stored_message_held(committed_db: Connection) -> None:
    """A suspended case still receives; what that opens, and a message waits for, must not run."""
    at = case(committed_db)
    subscription(at)
    rows.insert(
        committed_db,
        "message",
        name="NEXT",
        correlation_key="k",
        variables=Jsonb({}),
        published_by="op",
        expires_at=rows.one(committed_db, "SELECT baton_clock() + interval '1 hour'"),
    )
    at.do("UPDATE process_instance SET mark = 'suspended' WHERE id = %s", at.root)
    opened = NewSubscription(new_id(), at.tokens["moved"], "b", "NEXT", "k")
    change = at.change("subscription", Effects(subscriptions=[opened]))
    change.mark = "suspended"
    assert write(committed_db, change) is not None
    assert committed_db.execute("SELECT kind, held FROM job").fetchall() == [("message", ["suspended"])]
