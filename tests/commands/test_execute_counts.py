"""At most four `execute` calls a command, BEGIN and COMMIT not counted; the usual ones cost one or two."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from engine.commands import step
from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.delete_version import delete_version
from engine.commands.deliver_message import deliver_message
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job, fail_job, fire_timer, throw_job_error
from engine.commands.outcome import Lease, Rejected
from engine.commands.signals import broadcast_signal, receive_signal, spread_signal
from engine.commands.start import start_instance
from engine.commands.tasks import claim
from engine.commands.thrown_messages import publish_thrown
from engine.core.values import typed
from engine.db import definitions
from engine.db.apply import write
from engine.db.load import load_batch
from engine.db.prepared import Prepared
from engine.db.session import connect
from engine.expressions import parse
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, deployed, started, the_task
from tests.commands.test_deploy import message, process, put, timer
from tests.conftest import Clock
from tests.core.models import boundary, call, catch, model, par, service, tells, user, xor
from tests.rows import insert, one

FREE = ("BEGIN", "COMMIT", "ROLLBACK")


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    with connect(database_url) as conn:
        engage(conn)
        yield conn


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every statement that any cursor executes meanwhile."""
    said: list[str] = []
    execute, execute_prepared = psycopg.Cursor.execute, Prepared.execute

    def counted(self: psycopg.Cursor, query: Any, *args: Any, **kwargs: Any) -> psycopg.Cursor:
        said.append(str(query))
        return execute(self, query, *args, **kwargs)

    def counted_prepared(self: Prepared, *args: Any) -> Prepared:
        said.append(self.text)
        return execute_prepared(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", counted)
        patch.setattr(Prepared, "execute", counted_prepared)
        yield said
    said[:] = [query for query in said if query not in FREE]


def count(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> int:
    with counting(monkeypatch) as said:
        outcome = run()
    assert not isinstance(outcome, Rejected), outcome
    return len(said)


ASSIGNED = {"assignee": parse("${'ada'}")}


def test_the_mix_of_a_single_path_costs_two_two_one_two(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> score -> check -> end", score=service(), check=user(candidate_groups=(parse("${'billing'}"),))))
    assert count(monkeypatch, lambda: start_instance(conn, "model", actor=ADA, variables={}, request_id="s")) == 2
    (lease,) = acquired(conn)
    assert count(monkeypatch, lambda: complete_job(conn, lease, variables={"a": 1})) == 2
    task = the_task(conn, "check")
    assert count(monkeypatch, lambda: claim(conn, task, actor=ADA, request_id="c")) == 1
    assert count(monkeypatch, lambda: complete_task(conn, task, actor=ADA, variables={}, request_id="d")) == 2


def test_a_start_by_memory_passes_by_a_newer_version_that_is_being_deleted(
    conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(conn, model("start -> a -> end", a=user()))
    started(conn)
    deployed(conn, model("start -> a -> end", a=user()), version=2, status="deleting")
    assert count(monkeypatch, lambda: start_instance(conn, "model", actor=ADA, variables={}, request_id="s")) == 1


def test_lock_first_after_a_read_costs_three(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> par -> a -> par2 -> end", "par -> b -> par2", a=user(**ASSIGNED), b=service(), par=par(), par2=par()))
    started(conn)
    task = the_task(conn, "a")
    assert count(monkeypatch, lambda: complete_task(conn, task, actor=ADA, variables={}, request_id="d")) <= 3


def test_lock_first_at_once_costs_two(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> par -> a -> par2 -> end", "par -> b -> par2", a=service(), b=service(), par=par(), par2=par()))
    started(conn)
    lease, _ = acquired(conn)
    hinted = Lease(lease.kind, lease.item_id, lease.number, lease.owner, None, {"lock_first": True})
    assert count(monkeypatch, lambda: complete_job(conn, hinted, variables={})) == 2


def test_a_completion_whose_batch_was_read_ahead_costs_one(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> score -> check -> end", score=service(), check=user()))
    started(conn)
    (lease,) = acquired(conn)
    ahead = replace(lease, detail=load_batch(conn, [lease.item_id])[lease.item_id].detail)
    assert count(monkeypatch, lambda: complete_job(conn, ahead, variables={"a": 1})) == 1


def test_a_batch_read_ahead_that_is_stale_costs_three_and_loses_nothing(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> score -> check -> end", score=service(), check=user()))
    started(conn)
    (lease,) = acquired(conn)
    ahead = replace(lease, detail=load_batch(conn, [lease.item_id])[lease.item_id].detail)
    conn.execute("UPDATE process_instance SET revision = revision + 1")
    assert count(monkeypatch, lambda: complete_job(conn, ahead, variables={"a": 1})) == 3
    assert one(conn, "SELECT revision FROM process_instance") == 2


def test_a_process_that_asks_for_the_time_is_read_again(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> score -> check -> end", score=service(), check=user(due=parse("${now}"))))
    started(conn)
    (lease,) = acquired(conn)
    ahead = replace(lease, detail=load_batch(conn, [lease.item_id])[lease.item_id].detail)
    assert count(monkeypatch, lambda: complete_job(conn, ahead, variables={})) == 2


def test_opening_a_subscription_costs_four_at_most(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> a -> wait -> end", a=user(**ASSIGNED), wait=catch(on="PAID")))
    assert count(monkeypatch, lambda: start_instance(conn, "model", actor=ADA, variables={}, business_key="1", request_id="s")) == 2
    task = the_task(conn, "a")
    assert count(monkeypatch, lambda: complete_task(conn, task, actor=ADA, variables={}, request_id="d")) == 4


def test_a_write_in_two_statements_that_opens_subscriptions_costs_four_at_most(
    conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = {
        "b": user(**ASSIGNED),
        "c": service(),
        "d": service("outside", work="external"),
        "e": catch(on="PAID"),
        "f": catch(after="PT1H"),
    }
    deployed(conn, model("start -> a -> par -> b", *(f"par -> {name}" for name in "cdef"), a=user(**ASSIGNED), par=par(), **after))
    started(conn, business_key="1")
    task = the_task(conn, "a")
    assert count(monkeypatch, lambda: complete_task(conn, task, actor=ADA, variables={"x": 1}, request_id="d")) == 4


def test_a_timer_that_withdraws_a_task_and_an_error_cost_four_at_most(
    conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    deployed(conn, model("start -> a -> end", "late -> end2", a=user(**ASSIGNED), late=boundary("a", after="PT1H")))
    started(conn)
    clock.advance(hours=2)
    (lease,) = acquired(conn)
    assert count(monkeypatch, lambda: fire_timer(conn, lease)) <= 4

    deployed(conn, model("start -> a -> end", "oops -> b -> end2", a=service(), b=user(), oops=boundary("a", error="E")), version=2)
    started(conn)
    (lease,) = acquired(conn)
    assert count(monkeypatch, lambda: throw_job_error(conn, lease, code="E", message="", variables={})) <= 4


def test_a_deployment_over_a_version_that_this_process_never_read_costs_four(
    conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = timer("timeCycle", "R/PT15M") + '<startEvent id="paid"><messageEventDefinition messageRef="m"/></startEvent>'
    starts += '<sequenceFlow id="g" sourceRef="paid" targetRef="e"/>'
    root = message("PAID")["root"]
    put(conn, process(start=starts, root=root))
    due = one(conn, "SELECT due_at FROM job WHERE kind = 'start_timer'")
    monkeypatch.setattr(definitions, "_kept", OrderedDict())
    changed = process(start=starts, name="changed", root=root)
    assert count(monkeypatch, lambda: deploy(conn, [("p.bpmn", changed)], actor=OP, request_id="again")) == 4
    assert one(conn, "SELECT due_at FROM job WHERE kind = 'start_timer'") == due, "the unchanged timer goes on"


def test_failing_costs_one(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> a -> end", a=service()))
    started(conn)
    (lease,) = acquired(conn)
    assert count(monkeypatch, lambda: fail_job(conn, lease, error="no")) == 1


def test_cancelling_costs_four_its_size_the_lock_the_write_and_the_audit(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> a -> end", a=user(**ASSIGNED)))
    case = started(conn)
    assert count(monkeypatch, lambda: cancel_instance(conn, case.instance_id, actor=OP, reason="", request_id="x")) == 4


def test_a_delivery_that_opens_the_next_subscription_costs_four_at_most(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> one -> two -> end", one=catch(on="PAID"), two=catch(on="SHIPPED")))
    later = one(conn, "SELECT baton_clock() + interval '1 hour'")
    insert(conn, "message", name="PAID", correlation_key="1", published_by="op", expires_at=later)
    started(conn, business_key="1")
    (lease,) = acquired(conn)
    assert count(monkeypatch, lambda: deliver_message(conn, lease)) <= 4


def test_a_signal_costs_one_to_throw_one_a_step_and_four_at_most_to_receive(
    conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(conn, model("start -> one -> two -> end", one=catch(signal="GO"), two=catch(on="SHIPPED")))
    started(conn, business_key="1")
    assert count(monkeypatch, lambda: broadcast_signal(conn, "GO", actor=OP, variables={}, request_id="s")) == 1
    (throw,) = acquired(conn)
    assert count(monkeypatch, lambda: spread_signal(conn, throw)) == 1
    (lease,) = acquired(conn)
    assert count(monkeypatch, lambda: receive_signal(conn, lease)) <= 4


def test_a_thrown_message_that_nobody_waits_for_costs_three(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, model("start -> tell -> end", tell=tells("PAID")))
    started(conn)
    (lease,) = acquired(conn)
    assert count(monkeypatch, lambda: publish_thrown(conn, lease)) == 3


def test_deleting_a_version_costs_three(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    put(conn, process(**message("A")))
    newest = put(conn, process(**message("B"))).definitions[0].id
    assert count(monkeypatch, lambda: delete_version(conn, newest, actor=OP, reason="x", request_id="d")) == 3


def test_a_call_of_what_this_process_has_called_before_costs_no_look(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    check = replace(model("start -> look -> end", look=user(**ASSIGNED)), key="looked_at")
    deployed(conn, replace(model("start -> first -> ask -> end", first=user(**ASSIGNED), ask=call("looked_at")), key="model"))
    deployed(conn, check)
    costs = []
    for _ in range(2):
        case = started(conn).instance_id
        first = the_task(conn, "first", instance_id=case)
        costs.append(count(monkeypatch, lambda task=first: complete_task(conn, task, actor=ADA, variables={}, request_id=None)))
        look = the_task(conn, "look")
        costs.append(count(monkeypatch, lambda task=look: complete_task(conn, task, actor=ADA, variables={}, request_id=None)))
    assert costs == [3, 2, 2, 2]  # the first has to find the definition


def test_a_definition_that_is_called_for_the_first_time_is_found_and_read_by_one_look(
    conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(conn, model("start -> first -> ask -> end", first=user(**ASSIGNED), ask=call("asked")))
    asked = put(conn, process("asked")).definitions[0].id
    monkeypatch.delitem(definitions._kept, asked)  # as in a process that did not deploy it
    started(conn)
    first = the_task(conn, "first")
    assert count(monkeypatch, lambda: complete_task(conn, first, actor=ADA, variables={}, request_id=None)) == 3
    assert one(conn, "SELECT status FROM process_instance WHERE definition_id = %s", asked) == "completed"


def test_a_call_that_opens_a_subscription_below_two_others_costs_four_at_most(
    conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(conn, replace(model("start -> wait -> end", wait=catch(on="PAID")), key="deepest"))
    deployed(conn, replace(model("start -> inner -> end", inner=call("deepest")), key="middle"))
    deployed(conn, replace(model("start -> first -> ask -> end", first=user(**ASSIGNED), ask=call("middle")), key="model"))
    for _ in range(2):  # the first has to find two definitions: one of them with its lock
        case = started(conn).instance_id
        first = the_task(conn, "first", instance_id=case)
        assert count(monkeypatch, lambda task=first: complete_task(conn, task, actor=ADA, variables={}, request_id=None)) <= 4


ASKS = {"a": user(**ASSIGNED), "which": xor(), "wait": catch(on="PAID")}


@pytest.mark.parametrize("branches", [False, True], ids=["one statement", "two statements"])
def test_a_write_that_missed_and_then_opens_a_subscription_costs_four(
    conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, branches: bool
) -> None:
    more: dict[str, Any] = {"b": user(**ASSIGNED), "c": service(), "d": service("outside", work="external"), "f": catch(after="PT1H")}
    after = ["which -> par", "par -> wait -> end2", *(f"par -> {name}" for name in "bcdf")] if branches else ["which -> wait -> end2"]
    elements = {**ASKS, **more, "par": par()} if branches else ASKS
    yes = "which>par" if branches else "which>wait"
    deployed(conn, model("start -> a -> which -> end", *after, conditions={yes: "${go}"}, defaults=("which>end",), **elements))
    later = one(conn, "SELECT baton_clock() + interval '1 hour'")
    insert(conn, "message", name="PAID", correlation_key="1", published_by="op", expires_at=later)
    case = start_instance(conn, "model", actor=ADA, variables={"go": typed(False)}, business_key="1", request_id=None)
    assert not isinstance(case, Rejected)
    once = []

    def while_it_was_planned(connection: psycopg.Connection, change: Any) -> Any:
        if not once:
            once.append("UPDATE variable SET value = 'true'; UPDATE process_instance SET revision = revision + 1")
            with psycopg.connect(conn.info.dsn, password=conn.info.password, autocommit=True) as other:
                other.execute(once[0])
        return write(connection, change)

    monkeypatch.setattr(step, "write", while_it_was_planned)
    task = the_task(conn, "a")
    with counting(monkeypatch) as said:
        done = complete_task(conn, task, actor=ADA, variables={}, request_id="d")
    ours = [query for query in said if query not in once]
    assert not isinstance(done, Rejected), done
    assert len(ours) == 4
    assert ours[-1].count("baton_open_subscriptions") == 1
    assert one(conn, "SELECT count(*) FROM subscription") == 1
    assert one(conn, "SELECT status FROM user_task WHERE id = %s", task) == "completed"
    opened = one(conn, "SELECT subscription_id FROM job WHERE kind = 'message'")  # the message that was stored is on its way
    assert opened == one(conn, "SELECT id FROM subscription")
    assert one(conn, "SELECT count(DISTINCT at) FROM history WHERE xid = (SELECT max(xid::text::bigint)::text::xid8 FROM history)") == 1
