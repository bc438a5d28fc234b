"""Compensation on PostgreSQL: completed executions are rows, which outlive what made them and are gone when they are undone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job, throw_job_error
from engine.commands.outcome import Deployed, InstanceCancelled, ItemDone, TaskCompleted
from engine.expressions import parse
from tests.bpmn.models import MODELS
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, deployed, kinds, places, started, status, the_task
from tests.core.models import boundary, call, end, model, service, several, start, sub, undo, user
from tests.rows import one

Connection = psycopg.Connection[Any]
ADAS = {"assignee": parse("${'ada'}")}


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


@pytest.fixture
def trip(conn: Connection) -> UUID:
    file = ("compensation.bpmn", (MODELS / "compensation.bpmn").read_bytes())
    assert isinstance(deploy(conn, [file], actor=OP), Deployed)
    return started(conn, "compensation", variables={"guests": ["Bo", "Cy"], "seat": 0}).instance_id


def done(conn: Connection, element: str, **variables: Any) -> None:
    task = the_task(conn, element)
    outcome = complete_task(conn, task, actor=ADA, variables=variables, request_id=f"done-{task}")
    assert isinstance(outcome, TaskCompleted), outcome


def open_tasks(conn: Connection) -> list[str]:
    return [row[0] for row in conn.execute("SELECT name FROM user_task WHERE status IN ('open', 'claimed') ORDER BY name")]


def kept(conn: Connection) -> list[str]:
    """The elements of the completed executions that there are, inner ones too."""
    return sorted(row[0] for row in conn.execute("SELECT element_id FROM completed_execution"))


def booked(conn: Connection) -> None:
    done(conn, "hotel", room=12)
    done(conn, "seat", seat=1)
    done(conn, "seat", seat=2)


def seen(conn: Connection, element: str, name: str) -> Any:
    """A variable as the open task of an element sees it."""
    return one(
        conn,
        "SELECT v.value FROM user_task u JOIN token t ON t.id = u.token_id JOIN scope s ON s.id = t.scope_id"
        " CROSS JOIN LATERAL unnest(s.path) WITH ORDINALITY p (id, depth) JOIN variable v ON v.scope_id = p.id AND v.name = %s"
        " WHERE u.element_id = %s AND u.status IN ('open', 'claimed') ORDER BY p.depth DESC LIMIT 1",
        name,
        element,
    )


def test_a_cancelled_transaction_is_undone_in_reverse_order_with_the_data_of_each_execution(conn: Connection, trip: UUID) -> None:
    booked(conn)
    assert kept(conn) == ["hotel", "seat", "seat", "seats", "seats"]
    done(conn, "agree", answer="no")
    assert open_tasks(conn) == ["Free the seat of Cy"]
    assert seen(conn, "no_seat", "seat") == 2
    done(conn, "no_seat")
    assert open_tasks(conn) == ["Free the seat of Bo"]
    assert seen(conn, "no_seat", "seat") == 1
    done(conn, "no_seat")
    assert open_tasks(conn) == ["Cancel the hotel"]
    assert seen(conn, "no_hotel", "room") == 12
    done(conn, "no_hotel")
    assert places(conn, trip) == [("sorry", "waiting")]
    assert kept(conn) == []
    done(conn, "sorry")
    assert status(conn, trip) == "completed"


def test_a_hazard_leaves_without_compensation_and_keeps_nothing(conn: Connection, trip: UUID) -> None:
    booked(conn)
    done(conn, "agree", answer="full")
    assert (places(conn, trip), kept(conn)) == ([("sorry", "waiting")], [])


def test_a_transaction_that_completed_is_undone_when_it_is_thrown_for(conn: Connection, trip: UUID) -> None:
    booked(conn)
    done(conn, "agree", answer="yes")
    assert kept(conn) == ["hotel", "seat", "seat", "seats", "seats", "trip"]
    done(conn, "happy")
    for name in ("no_seat", "no_seat", "no_hotel"):
        done(conn, name)
    assert status(conn, trip) == "completed"
    assert kept(conn) == []
    told = Counter(kinds(conn, trip))
    assert (told["compensation_thrown"], told["compensation_begun"], told["compensation_done"]) == (3, 6, 6)


def test_what_completed_goes_with_an_instance_that_ends_or_is_cancelled(conn: Connection, trip: UUID) -> None:
    booked(conn)
    assert isinstance(cancel_instance(conn, trip, actor=OP, reason="", request_id="c"), InstanceCancelled)
    assert kept(conn) == []


def test_an_instance_that_is_cancelled_while_it_compensates_leaves_nothing(conn: Connection, trip: UUID) -> None:
    booked(conn)
    done(conn, "agree", answer="no")
    assert isinstance(cancel_instance(conn, trip, actor=OP, reason="", request_id="c"), InstanceCancelled)
    assert kept(conn) == []
    assert one(conn, "SELECT (SELECT count(*) FROM token) + (SELECT count(*) FROM scope) + (SELECT count(*) FROM variable)") == 0
    assert open_tasks(conn) == []


def test_handlers_run_as_jobs_one_after_the_other_each_once(conn: Connection) -> None:
    definition = model(
        "start -> each -> regret -> end", each=several(service("work"), of="${items}"), no_each=service("work", inputs={"what": "${item}"}),
        regret=undo(), handlers={"each": "no_each"},
    )  # fmt: skip
    deployed(conn, definition)
    case = started(conn, variables={"items": ["a", "b", "c"]})
    for lease in acquired(conn):
        assert isinstance(complete_job(conn, lease, variables={}), ItemDone)
    undone = []
    for _ in range(3):
        (lease,) = acquired(conn)
        undone.append(one(conn, "SELECT payload->'inputs'->'what'->>'value' FROM job WHERE id = %s", lease.item_id))
        assert isinstance(complete_job(conn, lease, variables={}), ItemDone)
        assert not isinstance(complete_job(conn, lease, variables={}), TaskCompleted)  # a late repeat moves nothing
    assert sorted(undone) == ["a", "b", "c"]
    assert status(conn, case.instance_id) == "completed"


def test_rows_of_an_interrupted_subprocess_go_with_it(conn: Connection) -> None:
    definition = model(
        "start -> sub -> end", "failed -> repair -> end", "s -> a -> work -> e", inside={"sub": "s a work e"}, sub=sub(),
        s=start(), a=user(**ADAS), work=service("work"), repair=user(**ADAS),
        e=end(), failed=boundary("sub", error="*"), handlers={"a": "no_a"},
    )  # fmt: skip
    deployed(conn, definition)
    started(conn)
    done(conn, "a")
    assert kept(conn) == ["a"]
    (lease,) = acquired(conn)
    assert isinstance(throw_job_error(conn, lease, code="BAD", message="", variables={}), ItemDone)
    assert kept(conn) == []
    assert open_tasks(conn) == ["repair"]


def test_a_called_process_undoes_its_own_executions_which_are_rows_of_its_instance(conn: Connection) -> None:
    called = model("start -> book -> regret -> end", regret=undo(), book=user(**ADAS), no_book=user(**ADAS), handlers={"book": "no_book"})
    deployed(conn, replace(called, key="booking"))
    deployed(
        conn,
        model(
            "start -> a -> trip -> undo_all -> end", a=user(**ADAS), trip=call("booking"), undo_all=undo(), no_a=user(**ADAS),
            no_trip=user(**ADAS), handlers={"a": "no_a", "trip": "no_trip"},
        ),
    )  # fmt: skip
    case = started(conn).instance_id
    done(conn, "a")
    done(conn, "book")
    inner = one(conn, "SELECT id FROM process_instance WHERE parent_id = %s", case)
    assert Counter(kinds(conn, inner))["compensation_begun"] == 1
    assert kept(conn) == ["a"]
    done(conn, "no_book")
    assert status(conn, inner) == "completed"
    assert open_tasks(conn) == ["no_trip"]
    done(conn, "no_trip")
    done(conn, "no_a")
    assert (status(conn, case), kept(conn)) == ("completed", [])


def test_an_instance_that_is_cancelled_takes_the_executions_of_what_it_called_along(conn: Connection) -> None:
    called = model("start -> book -> wait -> end", book=user(**ADAS), handlers={"book": "no_book"})
    deployed(conn, replace(called, key="booking"))
    deployed(conn, model("start -> trip -> end", trip=call("booking")))
    case = started(conn).instance_id
    done(conn, "book")
    assert kept(conn) == ["book"]
    assert isinstance(cancel_instance(conn, case, actor=OP, reason="", request_id="c"), InstanceCancelled)
    assert kept(conn) == []
