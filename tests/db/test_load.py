"""What commands and handlers are shown of a case."""

from __future__ import annotations

from decimal import Decimal

import psycopg
import pytest

from engine.db.load import load_batch, lock_case, read_case
from engine.expressions import parse
from engine.ids import new_id
from tests.cast import engage
from tests.commands.cases import acquired, deployed, started, the_task
from tests.core.models import boundary, end, model, par, service, start, sub, user
from tests.rows import one


@pytest.fixture
def conn(committed_db: psycopg.Connection) -> psycopg.Connection:
    engage(committed_db)
    return committed_db


def test_nothing_is_loaded_of_a_leaf_that_is_not_there(conn: psycopg.Connection) -> None:
    for kind in ("user_task", "job", "external_task", "subscription", "token", "instance"):
        assert read_case(conn, kind, new_id()) is None


def test_a_kind_that_is_none_is_refused_by_name(conn: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.RaiseException, match="expected a kind of leaf, found chair"):
        read_case(conn, "chair", new_id())


def test_the_chain_of_scopes_its_owners_and_what_waits_at_joins_are_shown_and_nothing_else(conn: psycopg.Connection) -> None:
    mine = {"assignee": parse("${'ada'}")}
    deployed(
        conn,
        model(
            "start -> par -> sub -> end",
            "par -> beside -> end",
            "in -> fork -> a -> meet -> out",
            "fork -> meet",
            "fork -> b -> meet",
            inside={"sub": "in fork a b meet out"},
            par=par(),
            fork=par(),
            meet=par(),
            sub=sub({"inner": "${1}"}),
            a=user(**mine),
            b=user(**mine),
            beside=user(**mine),
            out=end(),
            **{"in": start()},
        ),
    )
    case = started(conn, variables={"outer": 33})

    narrow = read_case(conn, "user_task", the_task(conn, "a"))

    assert narrow is not None and narrow.snapshot is not None and narrow.leaf.fence == "ada"
    shown = narrow.snapshot
    process, inner = sorted(shown.scopes.values(), key=lambda scope: scope.element_id or "")
    assert (process.parent_id, inner.parent_id, inner.element_id) == (None, process.id, "sub")
    assert {name: value.value for name, value in {**process.variables, **inner.variables}.items()} == {"outer": 33, "inner": 1}
    assert sorted((token.element_id, token.status) for token in shown.tokens.values()) == [
        ("a", "waiting"),
        ("meet", "joining"),
        ("sub", "waiting"),
    ]
    assert inner.token_id in shown.tokens
    assert shown.crowded == {process.id, inner.id}, "`beside` and `b` were not loaded"
    assert (shown.business_key, shown.started_by, shown.revision) == (None, "ada", 0)

    whole = read_case(conn, "instance", case.instance_id, whole=True)
    assert whole is not None and whole.snapshot is not None and whole.snapshot.whole
    assert sorted(token.element_id for token in whole.snapshot.tokens.values()) == ["a", "b", "beside", "meet", "sub"]
    assert len(whole.snapshot.tasks) == 3 and not whole.snapshot.crowded


def test_a_timer_is_shown_the_task_that_it_may_interrupt(conn: psycopg.Connection) -> None:
    deployed(conn, model("start -> a -> end", "late -> end2", a=user(), late=boundary("a", after="PT1H")))
    started(conn)
    loaded = read_case(conn, "job", one(conn, "SELECT id FROM job"))
    assert loaded is not None and loaded.snapshot is not None
    assert [task.id for task in loaded.snapshot.tasks] == [the_task(conn, "a")]


def test_locking_shows_the_same_and_holds_the_root_and_the_leaf(conn: psycopg.Connection, database_url: str) -> None:
    deployed(conn, model("start -> a -> end", a=user(assignee=parse("${'ada'}"))))
    case = started(conn)
    task = the_task(conn, "a")
    free = read_case(conn, "user_task", task)
    conn.execute("BEGIN")
    locked = lock_case(conn, "user_task", task)
    assert locked is not None and free is not None
    assert (locked.snapshot, locked.leaf) == (free.snapshot, free.leaf)
    with psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as other:
        for table, key in (("process_instance", case.instance_id), ("user_task", task)):
            skipped = other.execute(f"SELECT count(*) FROM (SELECT FROM {table} WHERE id = %s FOR UPDATE SKIP LOCKED) x", (key,)).fetchone()
            assert skipped == (0,), table
    conn.execute("COMMIT")


def test_a_batch_shows_handlers_native_values_and_the_inner_scope_before_the_outer(conn: psycopg.Connection) -> None:
    deployed(
        conn,
        model(
            "start -> sub -> end",
            "in -> score -> out",
            inside={"sub": "in score out"},
            sub=sub({"who": "${'inner'}"}),
            score=service("work", inputs={"twice": "${price * 2}"}, max_attempts=4),
            out=end(),
            **{"in": start()},
        ),
    )
    case = started(conn, variables={"who": "outer", "price": 10.1, "items": [{"n": 1.5}]}, business_key="A-1")
    (lease,) = acquired(conn)

    work = load_batch(conn, [lease.item_id, new_id()])[lease.item_id]

    assert work.variables == {"who": "inner", "price": Decimal("10.1"), "items": [{"n": Decimal("1.5")}]}
    assert work.inputs == {"twice": Decimal("20.2")}
    assert (work.instance_id, work.business_key, work.element_id, work.topic) == (case.instance_id, "A-1", "score", "work")
    assert (work.attempt, work.max_attempts, work.lease_number, work.held) == (1, 4, lease.number, ())
    assert work.idempotency_key == str(lease.item_id), "R7: the same for every attempt"
