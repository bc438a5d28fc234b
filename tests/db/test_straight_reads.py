"""The reads of the usual case say word for word what baton_read_case says."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.outcome import TaskCompleted
from engine.db import straight
from engine.db.load import load_batch
from engine.expressions import parse
from tests.cast import ADA, engage
from tests.commands.cases import acquired, deployed, started, the_task
from tests.core.models import boundary, by_event, end, model, on_event, par, service, start, sub, user

Connection = psycopg.Connection[Any]
MINE = {"assignee": parse("${'ada'}")}
LARGE = "".join(f"{number * 7919 % 10007:x}" for number in range(6_000))


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def compared(conn: Connection, kind: str, *, lean: bool) -> dict[str, tuple[str, str, bool]]:
    """element -> what the function says, what the straight read says, and whether it called the function."""
    function, read = f"baton_read_case('{kind}', l.id, false, %(lean)s)", straight.document(kind, "%(lean)s")
    sql = f"SELECT l.element_id, {function}::text, ({read})::text, s.id IS NULL{straight.leaf_and_case(kind)}"
    rows = conn.execute(sql.encode(), {"lean": lean}).fetchall()
    return {element: tuple(found) for element, *found in rows}


@pytest.mark.parametrize("lean", [True, False])
def test_a_straight_read_says_what_the_function_says(conn: Connection, lean: bool) -> None:
    branches = ["a", "b", "outside", "first", "work", "deep"]
    deployed(
        conn,
        model(
            *(f"start -> par -> {name} -> join -> end" for name in branches),
            "in -> inner -> out",
            "again -> handled -> over",
            "late -> end",
            inside={"deep": "in inner out", "handler": "again handled over"},
            par=par(), join=par(), a=user("A", **MINE), b=user(**MINE), first=user(**MINE), work=service(),
            outside=service(work="external"), deep=sub({"n": "${1}"}), inner=user(**MINE), out=end(),
            handler=by_event(), handled=user(**MINE), over=end(),
            again=on_event(when="${never}", interrupting=False), late=boundary("b", after="PT0S", interrupting=False),
            **{"in": start()},  # type: ignore[arg-type]  # a word of the language
        ),
    )  # fmt: skip
    started(conn, variables={"text": LARGE, "n": 7, "never": False})
    done = complete_task(conn, the_task(conn, "first"), actor=ADA, variables={}, request_id=None)
    assert isinstance(done, TaskCompleted)
    tasks, jobs, outside = (compared(conn, kind, lean=lean) for kind in ("user_task", "job", "external_task"))
    for kind in (tasks, jobs, outside):
        for element, (function, read, _) in kind.items():
            assert read == function, element
    assert [kind[element][2] for kind, element in ((tasks, "a"), (jobs, "work"), (outside, "outside"))] == [False] * 3
    assert tasks["inner"][2] and jobs["late"][2], "other scopes and events are the function's"
    assert LARGE in tasks["a"][1] if not lean else LARGE not in tasks["a"][1]
    assert all(word in tasks["a"][1] for word in ("joining", "listening", "A", '"crowded" : ["'))
    assert tasks["first"][2], "a task that has ended lies nowhere"


def test_who_is_alone_in_a_process_is_read_so(conn: Connection) -> None:
    deployed(conn, model("start -> work -> a -> end", work=service(), a=user(**MINE)))
    started(conn)
    (lease,) = acquired(conn)
    ((function, read, called),) = compared(conn, "job", lean=True).values()
    assert (read, called) == (function, False)
    work = load_batch(conn, [lease.item_id])[lease.item_id]
    assert work.ahead is not None and work.ahead.snapshot is not None and not work.ahead.snapshot.crowded
