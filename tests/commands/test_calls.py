"""Call activities through the commands: all instances of a case in its one transaction (design, "The case is what a command locks")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.bpmn.definition import ProcessDefinition
from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job, fire_timer, throw_job_error
from engine.commands.messages import publish_message
from engine.commands.outcome import Deployed, InstanceCancelled, ItemDone, ItemRetried, MessagePublished, Refusal, Rejected, TaskCompleted
from engine.commands.retry import retry_item
from engine.commands.start import start_instance
from engine.commands.tasks import claim
from engine.db.session import connect
from engine.expressions import parse
from tests.cast import ADA, BO, OP, engage
from tests.commands.cases import acquired, deployed, kinds, places, started, status, the_task, variables
from tests.conftest import Clock
from tests.core.models import boundary, call, catch, error_end, escalation_end, inc, model, par, service, several, user

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as conn:
        engage(conn)
        yield conn


def named(key: str, definition: ProcessDefinition) -> ProcessDefinition:
    return replace(definition, key=key, name=key.title())


MINE = user(assignee=parse("ada"))
CHECK = named("check", model("start -> look -> end", look=MINE))
ORDER = named(
    "order",
    model(
        "start -> ask -> ship -> end",
        ask=call("check", inputs={"sum": "amount"}, results={"ok": "verdict"}),
        ship=MINE,
    ),
)


def test_a_case_of_two_processes_from_beginning_to_end(conn: Connection) -> None:
    order, check = deployed(conn, ORDER), deployed(conn, CHECK)
    root = started(conn, "order", business_key="A-1", variables={"amount": 7}).instance_id
    child = _called(conn, root)
    columns = "root_id, parent_id, definition_id, business_key, status, started_by"
    assert row(conn, f"SELECT {columns} FROM process_instance WHERE id = %s", child) == (root, root, check, "A-1", "running", "ada")
    assert variables(conn, child) == {"sum": 7}
    assert places(conn, child) == [("look", "waiting")] and places(conn, root) == [("ask", "waiting")]
    task = the_task(conn, "look", instance_id=child)
    assert row(conn, "SELECT root_id, definition_id, process_name, business_key FROM user_task WHERE id = %s", task) == (
        root, check, "Check", "A-1",
    )  # fmt: skip

    outcome = complete_task(conn, task, actor=ADA, variables={"verdict": "good"}, request_id=None)

    assert isinstance(outcome, TaskCompleted) and outcome.next_task_id is not None  # offered to whoever completed the last one
    assert status(conn, child) == "completed" and variables(conn, root) == {"amount": 7, "ok": "good"}
    assert row(conn, "SELECT final_variables -> 'verdict' ->> 'value', ended_by FROM process_instance WHERE id = %s", child) == (
        "good",
        "ada",
    )
    assert kinds(conn, child)[0] == "instance_started" and kinds(conn, child)[-1] == "instance_completed"
    ship = the_task(conn, "ship", instance_id=root)
    assert row(conn, "SELECT definition_id, process_name FROM user_task WHERE id = %s", ship) == (order, "Order")
    assert isinstance(complete_task(conn, ship, actor=ADA, variables={}, request_id=None), TaskCompleted)
    assert status(conn, root) == "completed" and _rows_left(conn, root) == 0


def test_history_is_kept_for_each_instance(conn: Connection) -> None:
    deployed(conn, ORDER), deployed(conn, CHECK)
    root = started(conn, "order").instance_id
    child = _called(conn, root)
    complete_task(conn, the_task(conn, "look"), actor=ADA, variables={}, request_id=None)
    rows = conn.execute(
        "SELECT DISTINCT h.instance_id, d.key, h.root_id FROM history h JOIN process_definition d ON d.id = h.definition_id"
    ).fetchall()
    assert sorted(rows, key=str) == sorted([(root, "order", root), (child, "check", root)], key=str)


@pytest.mark.parametrize("binding", ["latest", "deployment", "version"])
def test_a_binding_decides_which_version_is_called(conn: Connection, binding: str) -> None:
    bound = call("check", binding=binding, **({"version": "${2}"} if binding == "version" else {}))
    first = deployed(conn, CHECK, version=1)
    second = deployed(conn, CHECK, version=2)
    deployed(conn, named("order", model("start -> ask -> end", ask=bound)))
    third = deployed(conn, CHECK, version=3)
    root = started(conn, "order").instance_id
    wanted = {"latest": third, "deployment": second, "version": second}[binding]
    assert row(conn, "SELECT definition_id FROM process_instance WHERE id = %s", _called(conn, root)) == (wanted,) and wanted != first


def test_a_newer_version_is_called_from_its_deployment_on_although_the_older_one_is_remembered(conn: Connection) -> None:
    deployed(conn, ORDER)
    before = deployed(conn, CHECK, version=1)
    one_case = started(conn, "order").instance_id
    after = deployed(conn, CHECK, version=2)
    another = started(conn, "order").instance_id
    found = [row(conn, "SELECT definition_id FROM process_instance WHERE id = %s", _called(conn, root))[0] for root in (one_case, another)]
    assert found == [before, after]


def test_a_newer_version_that_needs_more_of_the_case_than_the_older_one_is_called_all_the_same(conn: Connection) -> None:
    chains = "start -> par -> first -> ask -> inc -> end", "par -> second -> inc"
    deployed(conn, named("order", model(*chains, par=par(), inc=inc(), first=MINE, second=MINE, ask=call("check"))))
    deployed(conn, CHECK)
    roots = [started(conn, "order").instance_id for _ in range(2)]
    first, second = (the_task(conn, "first", instance_id=root) for root in roots)
    complete_task(conn, first, actor=ADA, variables={}, request_id=None)  # from here on this process knows what it calls
    at_once = deployed(conn, named("check", model("start -> end")), version=2)
    complete_task(conn, second, actor=ADA, variables={}, request_id=None)
    assert row(conn, "SELECT definition_id FROM process_instance WHERE id = %s", _called(conn, roots[1])) == (at_once,)
    assert places(conn, roots[1]) == [("inc", "joining"), ("second", "waiting")]


@pytest.mark.parametrize("what", ["suspended", "deleting", "missing"])
def test_what_cannot_be_called_is_an_incident_at_the_call_and_a_retry_calls_it(conn: Connection, what: str) -> None:
    deployed(conn, ORDER)
    if what != "missing":
        check = deployed(conn, CHECK)
        started(conn, "order")  # so that this process remembers it
        conn.execute("UPDATE process_definition SET status = %s WHERE id = %s", (what, check))
    root = started(conn, "order").instance_id
    assert places(conn, root) == [("ask", "failed")] and _called_of(conn, root) == []
    token, kind, message = row(conn, "SELECT token_id, kind, message FROM incident WHERE root_id = %s", root)
    assert kind == "not_callable" and ("check" in message)
    if what == "missing":
        deployed(conn, CHECK)
    else:
        conn.execute("UPDATE process_definition SET status = 'active' WHERE id = %s", (check,))
    outcome = retry_item(conn, "token", token, actor=OP, attempts=1, request_id=None)
    assert isinstance(outcome, ItemRetried), outcome
    assert places(conn, _called(conn, root)) == [("look", "waiting")]
    assert row(conn, "SELECT count(*) FROM incident WHERE root_id = %s", root) == (0,)


def test_a_boundary_timer_of_the_call_cancels_what_was_called(conn: Connection, clock: Clock) -> None:
    late = named(
        "order",
        model("start -> ask -> end", "late -> other -> end", ask=call("check"), late=boundary("ask", after="PT1H"), other=user()),
    )
    deployed(conn, late), deployed(conn, CHECK)
    root = started(conn, "order").instance_id
    child, task = _called(conn, root), the_task(conn, "look")
    clock.advance(hours=2)
    (lease,) = acquired(conn)
    assert isinstance(fire_timer(conn, lease), ItemDone)
    assert status(conn, child) == "cancelled" and places(conn, root) == [("other", "waiting")]
    assert row(conn, "SELECT status, token_id FROM user_task WHERE id = %s", task) == ("cancelled", None)
    assert _rows_left(conn, child) == 0
    refused = complete_task(conn, task, actor=ADA, variables={}, request_id=None)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.ALREADY_CANCELLED


def test_an_error_of_a_job_two_calls_down_is_caught_by_the_root(conn: Connection) -> None:
    deployed(conn, named("deepest", model("start -> work -> end", work=service())))
    deployed(conn, named("middle", model("start -> inner -> end", inner=call("deepest"))))
    deployed(conn, named("order", model("start -> ask -> end", "wrong -> other -> end", ask=call("middle"), other=user(),
                                        wrong=boundary("ask", error="E1"))))  # fmt: skip
    root = started(conn, "order").instance_id
    (lease,) = acquired(conn)
    assert isinstance(throw_job_error(conn, lease, code="E1", message="no", variables={}), ItemDone)
    assert places(conn, root) == [("other", "waiting")]
    assert sorted(status(conn, each) for each in _called_of(conn, root)) == ["cancelled", "cancelled"]


def test_an_uncaught_error_of_the_called_process_fails_the_job_where_it_is(conn: Connection) -> None:
    deployed(conn, named("check", model("start -> work -> end", work=service())))
    deployed(conn, ORDER)
    root = started(conn, "order").instance_id
    (lease,) = acquired(conn)
    throw_job_error(conn, lease, code="E1", message="no", variables={})
    assert row(conn, "SELECT kind, instance_id FROM incident WHERE root_id = %s", root) == ("uncaught_error", _called(conn, root))


def test_an_escalation_at_the_end_of_the_called_process_lets_both_go_on(conn: Connection) -> None:
    deployed(conn, named("check", model("start -> look -> up", look=MINE, up=escalation_end("UP"))))
    told = boundary("ask", escalation="UP", interrupting=False)
    deployed(
        conn,
        named("order", model("start -> ask -> ship -> end", "told -> note -> end", ask=call("check"), ship=user(), note=user(), told=told)),
    )
    root = started(conn, "order").instance_id
    complete_task(conn, the_task(conn, "look"), actor=ADA, variables={}, request_id=None)
    assert places(conn, root) == [("note", "waiting"), ("ship", "waiting")]


def test_a_message_reaches_the_called_instance_by_the_business_key_of_the_case(conn: Connection) -> None:
    deployed(conn, named("check", model("start -> answer -> end", answer=catch(on="answered"))))
    deployed(conn, ORDER)
    root = started(conn, "order", business_key="A-1").instance_id
    child = _called(conn, root)
    assert row(conn, "SELECT instance_id, root_id FROM subscription") == (child, root)
    outcome = publish_message(
        conn, "answered", actor=OP, correlation_key="A-1", variables={"verdict": "yes"}, time_to_live_seconds=None, request_id=None
    )
    assert isinstance(outcome, MessagePublished) and outcome.instance_id == child
    assert status(conn, child) == "completed" and variables(conn, root)["ok"] == "yes"


def test_a_job_in_the_called_process_moves_the_caller(conn: Connection) -> None:
    deployed(conn, named("check", model("start -> work -> end", work=service())))
    deployed(conn, ORDER)
    root = started(conn, "order").instance_id
    (lease,) = acquired(conn)
    assert isinstance(complete_job(conn, lease, variables={"verdict": "done"}), ItemDone)
    assert places(conn, root) == [("ship", "waiting")] and variables(conn, root)["ok"] == "done"


def test_a_call_for_each_of_several_and_the_last_one_moves_the_caller(conn: Connection) -> None:
    deployed(conn, CHECK)
    each = several(call("check", inputs={"sum": "item"}), of="${sums}")
    deployed(conn, named("order", model("start -> ask -> ship -> end", ask=each, ship=user())))
    root = started(conn, "order", variables={"sums": [1, 2, 3]}).instance_id
    children = _called_of(conn, root)
    assert sorted(variables(conn, child)["sum"] for child in children) == [1, 2, 3]
    for child in children:
        assert places(conn, root)[0][0] == "ask"
        complete_task(conn, the_task(conn, "look", instance_id=child), actor=ADA, variables={}, request_id=None)
    assert places(conn, root) == [("ship", "waiting")]


# ---- cancelled


def test_cancelling_the_case_ends_what_it_called(conn: Connection) -> None:
    deployed(conn, ORDER), deployed(conn, CHECK)
    root = started(conn, "order").instance_id
    child, task = _called(conn, root), the_task(conn, "look")
    assert isinstance(cancel_instance(conn, root, actor=OP, reason="enough", request_id=None), InstanceCancelled)
    assert (status(conn, root), status(conn, child)) == ("cancelled", "cancelled") and _rows_left(conn, root) == 0
    assert row(conn, "SELECT status, ended_by FROM user_task WHERE id = %s", task) == ("cancelled", "op")
    told = conn.execute("SELECT instance_id, actor, data ->> 'reason' FROM history WHERE kind = 'instance_cancelled'").fetchall()
    assert sorted(told, key=str) == sorted([(root, "op", "enough"), (child, "op", "enough")], key=str)


def test_a_called_instance_is_not_cancelled_alone_and_the_refusal_names_the_case(conn: Connection) -> None:
    deployed(conn, ORDER), deployed(conn, CHECK)
    root = started(conn, "order").instance_id
    child = _called(conn, root)
    refused = cancel_instance(conn, child, actor=OP, reason="", request_id=None)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.CALLED_INSTANCE and refused.item_id == root
    assert str(root) in refused.detail and (status(conn, root), status(conn, child)) == ("running", "running")
    stranger = cancel_instance(conn, child, actor=BO, reason="", request_id=None)
    assert isinstance(stranger, Rejected) and stranger.refusal in (Refusal.NOT_FOUND, Refusal.NOT_ALLOWED)


def test_an_error_end_event_cancels_the_rest_of_the_called_process(conn: Connection) -> None:
    failing = model(
        "start -> par -> look -> end",
        "par -> other -> bad",
        look=user(),
        other=MINE,
        bad=error_end("E1"),
    )
    deployed(conn, named("check", failing))
    wrong = boundary("ask", error="E1")
    deployed(conn, named("order", model("start -> ask -> end", "wrong -> ship -> end", ask=call("check"), ship=user(), wrong=wrong)))
    root = started(conn, "order").instance_id
    child, look = _called(conn, root), the_task(conn, "look")
    assert not isinstance(claim(conn, look, actor=OP, request_id=None), Rejected)
    complete_task(conn, the_task(conn, "other"), actor=ADA, variables={}, request_id=None)
    assert status(conn, child) == "cancelled" and places(conn, root) == [("ship", "waiting")]
    assert row(conn, "SELECT status FROM user_task WHERE id = %s", look) == ("cancelled",)


def row(conn: Connection, query: str, *parameters: Any) -> tuple[Any, ...]:
    """The one row that a query finds."""
    (found,) = conn.execute(query, parameters).fetchall()
    return tuple(found)


def _called_of(conn: Connection, root: UUID) -> list[UUID]:
    rows = conn.execute("SELECT id FROM process_instance WHERE root_id = %s AND parent_id IS NOT NULL ORDER BY id", (root,)).fetchall()
    return [row[0] for row in rows]


def _called(conn: Connection, root: UUID) -> UUID:
    (child,) = _called_of(conn, root)
    return child


def _rows_left(conn: Connection, instance_id: UUID) -> int:
    (left,) = row(
        conn,
        "SELECT (SELECT count(*) FROM token WHERE instance_id = i.id) + (SELECT count(*) FROM scope WHERE instance_id = i.id)"
        " + (SELECT count(*) FROM job WHERE instance_id = i.id) FROM process_instance i WHERE i.id = %s",
        instance_id,
    )
    return int(left)


# ---- from a file


def test_a_file_with_calls_of_processes_and_global_tasks_runs(conn: Connection) -> None:
    file = (Path(__file__).parents[1] / "models" / "an_order_calls_a_check.bpmn").read_bytes()
    outcome = deploy(conn, [("order.bpmn", file)], actor=OP)
    assert isinstance(outcome, Deployed) and [each.key for each in outcome.definitions] == ["order", "check", "add_tax", "sign"]
    refused = start_instance(conn, "sign", actor=ADA, variables={}, request_id=None)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.INVALID  # only a call starts a global task
    root = started(conn, "order", business_key="A-1", variables={"amount": 60, "positions": ["nut", "bolt"]}).instance_id
    for article in ("nut", "bolt"):
        task = the_task(conn, "look")
        told = row(conn, "SELECT name, business_key, root_id FROM user_task WHERE id = %s", task)
        assert told == (f"Look for {article}", f"A-1/{article}", root)
        claim(conn, task, actor=ADA, request_id=None)
        complete_task(conn, task, actor=ADA, variables={"seen": 3}, request_id=None)
    assert variables(conn, root)["total"] == 120 and variables(conn, root)["last_seen"] == 3
    sign = the_task(conn, "sign")
    claim(conn, sign, actor=ADA, request_id=None)
    complete_task(conn, sign, actor=ADA, variables={"name": "Ada"}, request_id=None)
    assert status(conn, root) == "completed"
    final = row(conn, "SELECT final_variables FROM process_instance WHERE id = %s", root)[0]
    assert sorted(final) == ["amount", "last_seen", "positions", "total"]
    keys = "SELECT d.key FROM process_instance i JOIN process_definition d ON d.id = i.definition_id WHERE i.parent_id = %s ORDER BY i.id"
    called = conn.execute(keys, (root,)).fetchall()
    assert [key for (key,) in called] == ["add_tax", "check", "check", "sign"]


def test_an_error_of_a_called_process_that_was_read_from_a_file_ends_the_loop(conn: Connection) -> None:
    file = (Path(__file__).parents[1] / "models" / "an_order_calls_a_check.bpmn").read_bytes()
    deploy(conn, [("order.bpmn", file)], actor=OP)
    root = started(conn, "order", variables={"amount": 60, "positions": ["nut", "bolt"]}).instance_id
    task = the_task(conn, "look")
    claim(conn, task, actor=ADA, request_id=None)
    complete_task(conn, task, actor=ADA, variables={"seen": 0}, request_id=None)
    assert status(conn, root) == "completed"
    assert kinds(conn, root).count("error_caught") == 1


def test_a_call_of_a_process_that_is_not_deployed_is_a_warning_of_the_deployment(conn: Connection) -> None:
    file = b"""<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="urn:test">
      <process id="caller">
      <startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="c"/><callActivity id="c" calledElement="nobody"/>
      <sequenceFlow id="g" sourceRef="c" targetRef="e"/><endEvent id="e"/></process></definitions>"""
    outcome = deploy(conn, [("caller.bpmn", file)], actor=OP)
    assert isinstance(outcome, Deployed)
    (warning,) = outcome.definitions[0].warnings
    assert (warning.element_id, warning.line, warning.file) == ("c", 3, "caller.bpmn") and "'nobody', which is not deployed" in warning.what
    deployed(conn, named("nobody", model("start -> look -> end", look=user())))
    again = deploy(conn, [("caller.bpmn", file)], actor=OP)
    assert isinstance(again, Deployed) and again.definitions[0].warnings == ()
    conn.execute("UPDATE process_definition SET status = 'deleting' WHERE key = 'nobody'")
    deleted = deploy(conn, [("caller.bpmn", file.replace(b'<endEvent id="e"', b'<endEvent id="e" name="over"'))], actor=OP)
    assert isinstance(deleted, Deployed) and len(deleted.definitions[0].warnings) == 1
