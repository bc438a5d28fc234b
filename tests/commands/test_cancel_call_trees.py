"""A call tree three deep and two hundred wide is cancelled: leaf commands are refused at once, and nothing is left behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from engine.bpmn.definition import ProcessDefinition
from engine.commands.cancel import STEP_ROWS, cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.jobs import complete_job, continue_loop
from engine.commands.outcome import InstanceCancelled, ItemDone, Refusal, Rejected
from engine.commands.tasks import claim
from engine.expressions import parse
from tests.cast import ADA, OP, engage
from tests.commands.cases import acquired, deployed, started
from tests.commands.test_cancel_bounded import cancelling, finish, left_behind
from tests.commands.test_many_instances import due
from tests.core.models import call, model, par, service, several, user
from tests.rows import one

Connection = psycopg.Connection[Any]
WIDE = 200


def named(key: str, definition: ProcessDefinition) -> ProcessDefinition:
    return replace(definition, key=key, name=key.title())


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


@pytest.fixture
def tree(conn: Connection) -> UUID:
    """The root calls 200 processes, each of which calls one, in which a person and a handler have something to do."""
    both = model("start -> par -> look -> end", "par -> work -> end", par=par(), look=user(assignee=parse("ada")), work=service())
    deployed(conn, named("leaf", both))
    deployed(conn, named("branch", model("start -> inner -> end", inner=call("leaf", inputs={"number": "number"}))))
    each = several(call("branch", inputs={"number": "loopCounter"}), times=f"${{{WIDE}}}")
    deployed(conn, named("trunk", model("start -> each -> end", each=each)))
    root = started(conn, "trunk").instance_id
    while leases := due(conn):  # the activity begins its instances in steps
        assert isinstance(continue_loop(conn, leases[0]), ItemDone)
    return root


def test_a_call_tree_three_deep_and_two_hundred_wide_is_cancelled_and_nothing_is_left(conn: Connection, tree: UUID) -> None:
    assert one(conn, "SELECT count(*) FROM process_instance WHERE root_id = %s AND status = 'running'", tree) == 1 + 2 * WIDE
    (job,) = acquired(conn, limit=1)
    mine, other = (row[0] for row in conn.execute("SELECT id FROM user_task WHERE status = 'claimed' ORDER BY id LIMIT 2").fetchall())
    conn.execute("UPDATE user_task SET status = 'open', assignee = NULL WHERE id = %s", (other,))

    lease = cancelling(conn, tree)

    refused = [
        complete_task(conn, mine, actor=ADA, variables={}, request_id=None),
        claim(conn, other, actor=OP, request_id=None),
        complete_job(conn, job, variables={}),
    ]
    assert [each.refusal for each in refused if isinstance(each, Rejected)] == [Refusal.INSTANCE_CANCELLING] * 3

    sizes = finish(conn, lease)

    assert max(sizes) <= STEP_ROWS
    assert left_behind(conn) == {}
    assert conn.execute("SELECT status, count(*), count(ended_at) FROM process_instance GROUP BY 1").fetchall() == [
        ("cancelled", 1 + 2 * WIDE, 1 + 2 * WIDE)
    ]
    kept = "SELECT count(DISTINCT final_variables -> 'number' ->> 'value') FROM process_instance WHERE final_variables ? 'number'"
    assert one(conn, kept) == WIDE  # each with its own
    assert one(conn, "SELECT count(*) FROM history WHERE kind = 'instance_cancelled'") == 1 + 2 * WIDE
    assert one(conn, "SELECT count(*) FROM history WHERE kind = 'task_cancelled'") == WIDE


def test_a_called_instance_of_a_large_case_is_not_cancelled_alone(conn: Connection, tree: UUID) -> None:
    child = one(conn, "SELECT id FROM process_instance WHERE parent_id = %s ORDER BY id LIMIT 1", tree)
    refused = cancel_instance(conn, child, actor=OP, reason="", request_id=None)
    assert isinstance(refused, Rejected) and (refused.refusal, refused.item_id) == (Refusal.CALLED_INSTANCE, tree)


def test_a_small_call_tree_ends_at_once(conn: Connection) -> None:
    deployed(conn, named("leaf", model("start -> look -> end", look=user())))
    deployed(conn, named("branch", model("start -> inner -> end", inner=call("leaf"))))
    deployed(conn, named("trunk", model("start -> each -> end", each=several(call("branch"), times="${5}"))))
    root = started(conn, "trunk").instance_id
    assert cancel_instance(conn, root, actor=OP, reason="", request_id=None) == InstanceCancelled(root)
    assert left_behind(conn) == {} and one(conn, "SELECT count(*) FROM process_instance WHERE status = 'cancelled'") == 11
