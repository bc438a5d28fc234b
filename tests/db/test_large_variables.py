"""S37: a large variable is read by whoever needs it, and by nobody else: above all not by each instance over a collection."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.external_tasks import acquire_external_tasks
from engine.commands.outcome import TaskCompleted
from engine.core.snapshot import Snapshot
from engine.core.values import Later, NeedsVariables
from engine.db.load import load_batch, lock_case, read_case
from engine.expressions import parse
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, deployed, started, status, the_task
from tests.core.models import model, script, service, several, user
from tests.rows import one

Connection = psycopg.Connection[Any]
LARGE = [{"order": n, "text": f"{n * 7919 % 10007:x}"} for n in range(3_000)]
MINE = {"assignee": parse("${'ada'}")}


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def read(conn: Connection, leaf: Any, *, lean: bool) -> Snapshot:
    loaded = read_case(conn, "user_task", leaf, lean=lean)
    assert loaded is not None and loaded.snapshot is not None
    return loaded.snapshot


@pytest.mark.parametrize("over", [None, "${items}"])
def test_S37_a_lean_read_leaves_what_is_large_and_says_so(conn: Connection, over: str | None) -> None:
    task = user(**MINE)
    deployed(conn, model("start -> x -> end", x=several(task, of="${some}", element="one") if over else task))
    started(conn, variables={"items": LARGE, "some": [1], "n": 7})
    leaf = the_task(conn, "x")
    full, lean = read(conn, leaf, lean=False), read(conn, leaf, lean=True)
    (process,) = [scope.id for scope in full.scopes.values() if scope.parent_id is None]
    assert full.scopes[process].variables["items"].value == LARGE
    left = lean.scopes[process].variables
    assert (isinstance(left["items"], Later), left["items"].type, left["n"].value) == (True, "json", 7)
    with pytest.raises(NeedsVariables):
        _ = left["items"].value
    with conn.transaction():
        locked = lock_case(conn, "user_task", leaf, lean=True)
    assert locked is not None and locked.snapshot is not None
    assert isinstance(locked.snapshot.scopes[process].variables["items"], Later)


@pytest.mark.parametrize("follows", [script("${items.size()}", "n"), user(**MINE)])
def test_who_needs_it_gets_it_and_who_does_not_goes_on_without(conn: Connection, follows: Any) -> None:
    deployed(conn, model("start -> x -> y -> end", x=user(**MINE), y=follows))
    case = started(conn, variables={"items": LARGE}).instance_id
    done = complete_task(conn, the_task(conn, "x"), actor=ADA, variables={"m": 1}, request_id=None)
    assert isinstance(done, TaskCompleted)
    if follows.kind == "user_task":
        complete_task(conn, the_task(conn, "y"), actor=ADA, variables={"items": [1]}, request_id=None)
        assert one(conn, "SELECT final_variables->'items'->'value' FROM process_instance WHERE id = %s", case) == [1]
    else:
        assert one(conn, "SELECT final_variables->'n'->'value' FROM process_instance WHERE id = %s", case) == 3_000
        assert one(conn, "SELECT final_variables->'items'->'value' FROM process_instance WHERE id = %s", case) == LARGE
    assert status(conn, case) == "completed"


def test_S37_a_handler_gets_all_it_sees_but_within_the_instances_not_their_collection(conn: Connection) -> None:
    deployed(conn, model("start -> x -> end", x=several(service(), of="${items}"), y=service()))
    started(conn, variables={"items": LARGE[:2_000], "other": LARGE, "n": 7})
    work = load_batch(conn, [acquired(conn, limit=1)[0].item_id])
    (given,) = [each.variables for each in work.values()]
    assert sorted(given) == ["item", "loopCounter", "n", "other"]
    assert (given["item"], given["other"]) == (LARGE[0], LARGE)


def test_an_input_asks_for_the_collection(conn: Connection) -> None:
    deployed(conn, model("start -> x -> end", x=several(service(inputs={"all": "${items}"}), of="${items}")))
    started(conn, variables={"items": LARGE[:1_900]})
    (work,) = load_batch(conn, [acquired(conn, limit=1)[0].item_id]).values()
    assert len(work.inputs["all"]) == 1_900


def test_S37_an_external_worker_gets_the_item_not_the_collection(conn: Connection) -> None:
    deployed(conn, model("start -> x -> end", x=several(service(work="external"), of="${items}")))
    started(conn, variables={"items": LARGE[:2_000], "other": LARGE})
    tasks = acquire_external_tasks(conn, actor=OP, worker_id="w", topics=["work"], limit=1)
    assert isinstance(tasks, list)
    assert sorted(tasks[0].variables) == ["item", "loopCounter", "other"]


def test_a_small_collection_is_seen_as_ever(conn: Connection) -> None:
    deployed(conn, model("start -> x -> end", x=several(service(), of="${items}")))
    started(conn, variables={"items": [1, 2]})
    (work,) = load_batch(conn, [acquired(conn, limit=1)[0].item_id]).values()
    assert work.variables["items"] == [1, 2]
