"""A worker's jobs: late answers under a stale lease, errors that are caught, retries, incidents, jobs that kill workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.commands.external_tasks import acquire_external_tasks
from engine.commands.jobs import complete_job, fail_job, throw_job_error
from engine.commands.outcome import ItemDone, ItemFailed, ItemRetried, Refusal, Rejected
from engine.commands.retry import retry_item
from engine.db.acquire import recover_expired
from tests import rows
from tests.bpmn.models import file_of
from tests.cast import ADA, OP, ROOT
from tests.conftest import Clock
from tests.scenarios_db.stage import Stage, Throws, done


def scores(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {"score": variables["net"] * 2}


def breaks(variables: Mapping[str, Any]) -> None:
    raise OSError("connection refused")


def test_S28_run_2_late_answers_under_a_stale_lease_are_refused_change_nothing_and_are_counted(stage: Stage, clock: Clock) -> None:
    stage.handlers["score"] = scores
    run = stage.begin("work_that_may_be_refused", net=21)
    (stale,) = stage.take("worker-1", seconds=5)
    clock.advance(seconds=6)  # its renewals are blocked
    recover_expired(stage.conn, limit=10)
    clock.advance(seconds=1)
    (fresh,) = stage.take("worker-2", seconds=5)
    assert (fresh.lease.item_id, fresh.lease.number) == (stale.lease.item_id, stale.lease.number + 1)
    before = rows.everything(stage.conn)

    late = [
        complete_job(stage.conn, stale.lease, variables={"score": 1}),
        fail_job(stage.conn, stale.lease, error="late"),
        throw_job_error(stage.conn, stale.lease, code="REFUSED", message="late", variables={"score": 2}),
    ]
    assert [each.refusal for each in late if isinstance(each, Rejected)] == [Refusal.LEASE_LOST] * 3
    assert rows.everything(stage.conn) == before
    counted = stage.conn.execute("SELECT command, reason, item_id FROM refusal ORDER BY id").fetchall()
    assert counted == [(name, "lease_lost", stale.lease.item_id) for name in ("complete_job", "fail_job", "throw_job_error")]
    assert isinstance(stage.end(fresh), ItemDone)
    assert (run.status, run.variables) == ("completed", {"net": 21, "score": 42})
    told = "SELECT data->>'owner', (data->>'attempt')::int FROM history WHERE kind = 'job_completed'"
    assert stage.conn.execute(told).fetchall() == [("worker-2", 2)]


def test_an_error_that_is_caught_goes_on_by_hand_with_its_message(stage: Stage) -> None:
    def refuses(variables: Mapping[str, Any]) -> None:
        raise Throws("REFUSED", "no such customer", net=0)

    stage.handlers["score"] = refuses
    run = stage.begin("work_that_may_be_refused", net=21)
    assert done(stage.work())
    assert run.open == ["by_hand"]
    assert run.variables == {"net": 0, "why": "no such customer"}
    run.complete("by_hand", ADA)
    assert (run.status, run.leftovers) == ("completed", 0)
    assert run.told("error_caught", "job_completed", "incident_opened") == ["error_caught refused"]


def test_S55_retries_until_the_incident_then_two_operators_a_broken_worker_and_the_fix(stage: Stage, clock: Clock) -> None:
    stage.handlers["score"] = breaks
    run = stage.begin("work_that_may_be_refused", net=21)
    for attempt in (1, 2, 3):
        (failed,) = stage.work()
        assert isinstance(failed, ItemFailed)
        assert failed.attempts == attempt
        assert stage.work() == [], "it waits for a minute"
        clock.advance(seconds=67)
    assert (failed.status, rows.one(stage.conn, "SELECT count(*) FROM incident")) == ("failed", 1)
    assert stage.work() == [], "a job without attempts is never leased"

    none = retry_item(stage.conn, "job", failed.item_id, actor=OP, attempts=0, request_id="0")
    assert isinstance(none, Rejected)
    assert none.refusal is Refusal.INVALID
    assert retry_item(stage.conn, "job", failed.item_id, actor=OP, request_id="1") == ItemRetried(failed.item_id, 1)
    second = retry_item(stage.conn, "job", failed.item_id, actor=ROOT, request_id="1")
    assert isinstance(second, Rejected)
    assert (second.refusal, second.by) == (Refusal.NOT_FAILED, "op")
    assert rows.one(stage.conn, "SELECT count(*) FROM incident") == 0

    (still,) = stage.work()
    assert isinstance(still, ItemFailed)
    assert (still.status, still.attempts) == ("failed", 4)
    assert rows.one(stage.conn, "SELECT count(*) FROM incident") == 1
    retry_item(stage.conn, "job", failed.item_id, actor=OP, request_id="2")
    stage.handlers["score"] = scores
    assert done(stage.work())
    assert (run.status, run.variables["score"], run.leftovers) == ("completed", 42, 0)
    assert run.told("incident_opened", "incident_resolved") == ["incident_opened score", "incident_resolved score"] * 2


def test_S57_a_job_that_kills_every_worker_ends_as_an_incident_while_other_jobs_go_on(stage: Stage, clock: Clock) -> None:
    stage.handlers["score"] = scores
    deadly = stage.begin("work_that_may_be_refused", net=0)
    others = [stage.start("work_that_may_be_refused", net=n) for n in (1, 2, 3)]
    for attempt in (1, 2, 3):
        leased = stage.take(f"worker-{attempt}")
        (killer,) = [item for item in leased if item.work.instance_id == deadly.id]
        assert killer.work.attempt == attempt
        for item in leased:  # the worker dies at the deadly one, and reports nothing of it
            if item is not killer:
                stage.end(item)
        clock.advance(seconds=31)
        recover_expired(stage.conn, limit=10)
    assert {run.status for run in others} == {"completed"}
    clock.advance(hours=1)
    assert stage.take() == [], "no fourth run"
    assert rows.columns(stage.conn, "job", killer.lease.item_id, "status", "attempts") == ("failed", 3)
    assert deadly.told("incident_opened", "job_recovered") == ["job_recovered score"] * 3 + ["incident_opened score"]


def test_a_token_that_could_not_go_on_is_retried_after_another_task_brought_what_was_missing(stage: Stage) -> None:
    run = stage.begin("a_missing_name", amount=7)
    assert run.places == [("enough", "failed"), ("tell", "waiting")]
    assert rows.one(stage.conn, "SELECT kind FROM incident") == "expression"
    assert "limit" in rows.one(stage.conn, "SELECT message FROM incident")
    token = rows.one(stage.conn, "SELECT id FROM token WHERE status = 'failed'")

    assert retry_item(stage.conn, "token", token, actor=OP, request_id="1") == ItemRetried(token, 1)
    assert run.places == [("enough", "failed"), ("tell", "waiting")], "still missing: never the default flow"
    assert rows.one(stage.conn, "SELECT count(*) FROM incident") == 1
    run.complete("tell", limit=5)
    assert retry_item(stage.conn, "token", token, actor=OP, request_id="2") == ItemRetried(token, 1)
    assert run.tasks == ["yes"]
    assert rows.one(stage.conn, "SELECT count(*) FROM incident") == 0
    run.complete("yes")
    assert (run.status, run.leftovers) == ("completed", 0)


def test_listeners_and_asynchronous_elements_are_jobs_that_workers_do(stage: Stage) -> None:
    done_by: list[str] = []

    def listens(name: str, **result: Any) -> Any:
        def handler(variables: Mapping[str, Any]) -> dict[str, Any]:
            done_by.append(name)
            return result

        return handler

    stage.handlers.update(
        {name: listens(name) for name in ("opened", "announce", "praise", "closed")}, thank=listens("thank", thanked=True)
    )
    run = stage.begin("listeners_and_steps")
    assert run.open == ["start#after-1"]
    assert done(stage.work())
    assert run.open == ["check", "late"]
    run.claim("check", OP)
    run.complete("check")
    assert done(stage.work())
    assert run.status == "completed"
    assert done_by == ["opened", "announce", "thank", "praise", "closed"]
    assert run.leftovers == 0


def test_the_headers_of_a_model_come_to_handlers_and_to_workers_outside(stage: Stage) -> None:
    told = '<extensionElements><zeebe:taskHeaders><zeebe:header key="{0}" value="{0} told"/></zeebe:taskHeaders></extensionElements>'
    body = (
        '<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="inside"/>'
        f'<serviceTask id="inside" baton:handler="h">{told.format("inside")}</serviceTask>'
        f'<sequenceFlow id="f2" sourceRef="inside" targetRef="outside"/>'
        f'<serviceTask id="outside" camunda:type="external" camunda:topic="t">{told.format("outside")}</serviceTask>'
    )
    stage.deploy_files([("p.bpmn", file_of(body))])
    stage.start("p")
    stage.handlers["h"] = lambda _: {}
    (item,) = stage.take()
    assert item.work.headers == {"inside": "inside told"}
    stage.end(item)
    (task,) = acquire_external_tasks(stage.conn, actor=OP, worker_id="client", topics=["t"])
    assert task.headers == {"outside": "outside told"}
