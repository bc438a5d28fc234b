"""Elements of the core that need the database's part: what listens in a scope, and joins that look at all of one."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job, fire_timer
from engine.commands.messages import publish_message
from engine.commands.outcome import Deployed, ItemDone, MessagePublished, Refusal, Rejected, TaskCompleted
from engine.expressions import parse
from tests.bpmn.models import MODELS
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, deployed, kinds, places, started, status, the_task
from tests.conftest import Clock
from tests.core.models import by_event, end, model, on_event, par, receive, service, several, start, user
from tests.rows import one

Connection = psycopg.Connection[Any]
ADAS = {"assignee": parse("${'ada'}")}
HANDLER = {"handler": by_event(), "he": end(), "undo": service("work")}


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def done(conn: Connection, element: str) -> None:
    outcome = complete_task(conn, the_task(conn, element), actor=ADA, variables={}, request_id=f"done-{element}")
    assert isinstance(outcome, TaskCompleted), outcome


def publish(conn: Connection, name: str) -> MessagePublished | Rejected:
    return publish_message(conn, name, actor=OP, correlation_key="7", variables={}, time_to_live_seconds=None)


def watched(**begins: Any) -> Any:
    return model(
        "start -> sub -> after -> end", "s -> par -> a -> par_join -> e", "par -> b -> par_join", "on -> undo -> he",
        s=start(), e=end(), a=user(**ADAS), b=user(**ADAS), after=user(**ADAS), on=on_event(**begins), **HANDLER, par=par(),
        inside={"sub": "s par a b par_join e handler", "handler": "on undo he"},
    )  # fmt: skip


def test_a_message_begins_the_event_subprocess_and_withdraws_tasks_and_joining_tokens(conn: Connection) -> None:
    deployed(conn, watched(on="STOP"))
    case = started(conn, business_key="7")
    assert places(conn, case.instance_id) == [("a", "waiting"), ("b", "waiting"), ("handler", "listening"), ("sub", "waiting")]
    done(conn, "a")
    assert places(conn, case.instance_id) == [("b", "waiting"), ("handler", "listening"), ("par_join", "joining"), ("sub", "waiting")]

    assert isinstance(publish(conn, "STOP"), MessagePublished)
    assert places(conn, case.instance_id) == [("handler", "waiting"), ("sub", "waiting"), ("undo", "waiting")]
    assert one(conn, "SELECT status FROM user_task WHERE element_id = 'b'") == "cancelled"
    assert one(conn, "SELECT count(*) FROM subscription") == 0
    again = publish(conn, "STOP")
    assert isinstance(again, Rejected)
    assert again.refusal is Refusal.NO_SUBSCRIPTION

    (lease,) = acquired(conn)
    assert isinstance(complete_job(conn, lease, variables={}), ItemDone)
    assert places(conn, case.instance_id) == [("after", "waiting")]
    done(conn, "after")
    assert status(conn, case.instance_id) == "completed"


def test_a_subprocess_that_ends_takes_what_listened_along(conn: Connection) -> None:
    deployed(conn, watched(on="STOP"))
    case = started(conn, business_key="7")
    done(conn, "a")
    done(conn, "b")
    assert places(conn, case.instance_id) == [("after", "waiting")]
    assert one(conn, "SELECT count(*) FROM subscription") == 0


def test_a_cycle_begins_an_event_subprocess_each_time_beside_the_tasks(conn: Connection, clock: Clock) -> None:
    deployed(conn, watched(after="R2/PT1H", interrupting=False))
    case = started(conn)
    for occurrence in (1, 2):
        clock.advance(seconds=3600)
        (timer,) = [lease for lease in acquired(conn) if one(conn, "SELECT kind FROM job WHERE id = %s", lease.item_id) == "timer"]
        assert isinstance(fire_timer(conn, timer), ItemDone)
        assert places(conn, case.instance_id).count(("undo", "waiting")) == occurrence
    assert ("handler", "listening") not in places(conn, case.instance_id), "the cycle is over"
    assert kinds(conn, case.instance_id).count("timer_fired") == 2


def test_S3_a_merge_waits_for_the_branch_that_was_taken_and_for_no_other(conn: Connection) -> None:
    deployed(
        conn,
        model(
            "start -> inc -> a -> inc_join -> after -> end",
            "inc -> b -> inc_join",
            "inc -> c -> inc_join",
            a=user(**ADAS),
            b=user(**ADAS),
            c=user(**ADAS),
            after=user(**ADAS),
            conditions={"inc>a": "${true}", "inc>b": "${true}", "inc>c": "${false}"},
        ),
    )
    case = started(conn)
    done(conn, "b")
    assert places(conn, case.instance_id) == [("a", "waiting"), ("inc_join", "joining")]
    done(conn, "a")
    assert places(conn, case.instance_id) == [("after", "waiting")]


def test_a_receive_task_receives_its_message(conn: Connection) -> None:
    deployed(conn, model("start -> wait -> after -> end", wait=receive("ANSWER"), after=user(**ADAS)))
    case = started(conn, business_key="7")
    assert isinstance(publish(conn, "ANSWER"), MessagePublished)
    assert places(conn, case.instance_id) == [("after", "waiting")]


def test_a_receive_task_that_instantiates_starts_a_case_for_each_message(conn: Connection) -> None:
    file = (MODELS / "more_elements.bpmn").read_bytes()
    assert isinstance(deploy(conn, [("more_elements.bpmn", file)], actor=OP), Deployed)
    values = {"amount": 21, "ticket": "t-1", "judges": []}
    outcome = publish_message(conn, "ASKED", actor=OP, correlation_key="", variables=values, time_to_live_seconds=None)
    assert isinstance(outcome, MessagePublished)
    assert (outcome.started, outcome.instance_id is not None) == (True, True)
    assert outcome.instance_id is not None
    assert places(conn, outcome.instance_id) == [
        ("hurry", "listening"),
        ("judge", "waiting"),
        ("rule", "waiting"),
        ("withdrawn", "listening"),
    ]


def test_S9_reviewers_are_counted_in_one_row_and_the_rest_is_withdrawn(conn: Connection) -> None:
    review = user(assignee=parse("${reviewer}"))
    each = several(review, of="${reviewers}", element="reviewer", until="${nrOfCompletedInstances >= 2}")
    deployed(conn, model("start -> review -> after -> end", review=each, after=user(**ADAS)))
    case = started(conn, variables={"reviewers": ["ada", "ada", "ada"]})
    counters = {"total": 3, "begun": 3, "over": ["reviewers"]}
    assert one(conn, "SELECT counters FROM scope WHERE counters ? 'total'") == {**counters, "completed": 0}
    tasks = [row[0] for row in conn.execute("SELECT id FROM user_task ORDER BY created_at, id").fetchall()]

    assert isinstance(complete_task(conn, tasks[0], actor=ADA, variables={"n": 1}, request_id="r1"), TaskCompleted)
    assert one(conn, "SELECT counters FROM scope WHERE counters ? 'total'") == {**counters, "completed": 1}
    assert places(conn, case.instance_id) == [("review", "waiting")] * 3, "the whole and two of its three"

    assert isinstance(complete_task(conn, tasks[1], actor=ADA, variables={"n": 2}, request_id="r2"), TaskCompleted)
    assert places(conn, case.instance_id) == [("after", "waiting")]
    assert one(conn, "SELECT status FROM user_task WHERE id = %s", tasks[2]) == "cancelled"
    assert one(conn, "SELECT count(*) FROM scope") == 1
    late = complete_task(conn, tasks[2], actor=ADA, variables={}, request_id="r3")
    assert isinstance(late, Rejected)
    assert late.status == 409


def test_a_sequence_of_jobs_reads_one_item_after_the_other(conn: Connection) -> None:
    each = several(service("work", inputs={"item": "${item}"}), of="${items}", sequential=True)
    deployed(conn, model("start -> x -> after -> end", x=each, after=user(**ADAS)))
    case = started(conn, variables={"items": ["a", "b"]})
    for item in ("a", "b"):
        (lease,) = acquired(conn)
        assert one(conn, "SELECT payload->'inputs'->'item'->>'value' FROM job WHERE id = %s", lease.item_id) == item
        assert isinstance(complete_job(conn, lease, variables={}), ItemDone)
    assert places(conn, case.instance_id) == [("after", "waiting")]
