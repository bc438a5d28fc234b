"""The watch over the order of locks: it sees the order broken in each of the ways it knows, and passes what is in order."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from engine.commands.complete_task import complete_task
from engine.commands.deploy import deploy
from engine.commands.messages import publish_message
from engine.commands.outcome import Deployed, MessagePublished, TaskCompleted
from engine.commands.tasks import claim
from engine.db import locks
from engine.db.locks import CALLING_START, Level
from engine.db.session import connect
from engine.expressions import parse
from tests import rows
from tests.cast import ADA, OP, engage
from tests.commands import cases
from tests.commands.test_deploy import message, process
from tests.core.models import catch, model, user
from tests.lock_order import ENGINE, Watch, locks_of, watching

Connection = psycopg.Connection[Any]
JOB = "UPDATE job SET level = 1 WHERE id = %(id)s"
CASE = "SELECT baton_lock_case('instance', %(id)s, false)"
KEY = "SELECT baton_lock_keys(ARRAY[1]::bigint[], '{}')"
DEFINITION = "SELECT baton_lock_definitions(ARRAY[%(id)s::uuid])"
CALLED = f"WITH {CALLING_START[0]} SELECT id FROM called"
REQUEST = "INSERT INTO request (tenant_id, actor, id, hash, outcome) VALUES ('', 'a', gen_random_uuid()::text, '', '{}')"
MESSAGE = "DELETE FROM message WHERE id = %(id)s"


def engine_runs(conn: Connection, *statements: str) -> None:
    """One transaction, as if a file of the engine executed it."""
    source = "def run(conn, statement, values):\n    conn.execute(statement, values)\n"
    pretended: dict[str, Any] = {}
    exec(compile(source, f"{ENGINE}/commands/pretended.py", "exec"), pretended)
    for statement in ("BEGIN", *statements, "ROLLBACK"):
        pretended["run"](conn, statement, {"id": "00000000-0000-0000-0000-000000000000", "called": [], "called_newest": []})


@pytest.mark.parametrize(
    ("why", "statements"),
    [
        ("goes down", [JOB, CASE]),
        ("goes down", [KEY, JOB]),
        ("goes down", [CASE, DEFINITION]),
        ("goes down", [CASE, KEY, CALLED]),
        ("goes down", [JOB, CALLED]),
        ("goes down", [MESSAGE, KEY]),
        ("goes down", [REQUEST, CASE]),
        ("goes down", [DEFINITION, "UPDATE process_instance SET revision = 1 WHERE id = %(id)s"]),
        ("goes down", [CASE, KEY, "DELETE FROM token WHERE id = %(id)s"]),
        ("two leaves", [JOB, JOB]),
        ("two leaves", [JOB, "DELETE FROM subscription WHERE id = %(id)s"]),
        ("two leaves", ["UPDATE user_task SET version = 1 WHERE root_id = %(id)s"]),
        ("two leaves", ["WITH a AS (DELETE FROM job WHERE id = %(id)s) DELETE FROM delivery WHERE id = %(id)s"]),
        ("waits", [JOB, KEY]),
        ("waits", [JOB, MESSAGE]),
        ("waits", [JOB, REQUEST]),
        ("keys twice", [CASE, KEY, KEY]),
        ("undeclared", ["SELECT 1 FROM job WHERE id = %(id)s FOR UPDATE"]),
        ("undeclared", ["SELECT pg_advisory_xact_lock(1)"]),
    ],
)
def test_an_order_that_is_broken_is_seen(db: Connection, shared_database_url: str, why: str, statements: list[str]) -> None:
    with watching() as watch, connect(shared_database_url) as conn:
        engine_runs(conn, *statements)
    assert [said.split(":")[0] for said in watch.wrong] == [why], watch.wrong


@pytest.mark.parametrize(
    "statements",
    [
        [CASE, JOB, "DELETE FROM token WHERE root_id = %(id)s", KEY, MESSAGE],
        [CASE, JOB, CALLED, KEY],
        [CASE, JOB, "UPDATE process_instance SET revision = 1 WHERE id = %(id)s"],  # the root is held: it is free
        [CASE, JOB, REQUEST],
        [DEFINITION, JOB, KEY],
        ["WITH m AS (SELECT id FROM job FOR UPDATE SKIP LOCKED) UPDATE job j SET level = 1 FROM m WHERE j.id = m.id"],
        [f"WITH leaf AS ({JOB} RETURNING id) {REQUEST}"],
        [KEY, REQUEST],
        ["SELECT 1 FROM job"],
    ],
)
def test_what_is_in_order_passes(db: Connection, shared_database_url: str, statements: list[str]) -> None:
    with watching() as watch, connect(shared_database_url) as conn:
        engine_runs(conn, *statements)
    assert watch.wrong == []


def test_what_a_test_executes_itself_is_not_looked_at_and_a_new_transaction_begins_with_nothing(
    db: Connection, shared_database_url: str
) -> None:
    with watching() as watch, connect(shared_database_url) as conn:
        conn.execute("SELECT pg_advisory_xact_lock(1)")
        engine_runs(conn, JOB)
        engine_runs(conn, JOB)
    assert watch.wrong == []
    assert [transaction.levels for transaction in watch.finished] == [["LEAF"], ["LEAF"]]


def test_a_command_that_breaks_the_order_is_seen(committed_db: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that also touched a second leaf of the case would be deadlock-prone; so is one that first took the leaf, then the root."""
    from engine.commands import tasks

    engage(committed_db)
    task = rows.task(committed_db)
    more = ", beside AS (UPDATE job j SET level = 1 FROM leaf WHERE j.root_id = leaf.root_id)"
    monkeypatch.setattr(
        tasks, "_CLAIM", tuple(text.replace(" SELECT id, at FROM leaf", f"{more} SELECT id, at FROM leaf") for text in tasks._CLAIM)
    )
    with watching() as watch:
        claim(committed_db, task, actor=ADA, request_id=None)
    assert watch.wrong and watch.wrong[0].startswith("two leaves: LEAF of job after ['LEAF']")


def levels(watch: Watch) -> list[list[str]]:
    return [list(dict.fromkeys(transaction.levels)) for transaction in watch.finished]


def test_the_levels_of_some_commands(committed_db: Connection) -> None:
    """What the watch records is what the docstring of locks.py says."""
    engage(committed_db)
    cases.deployed(
        committed_db, model("start -> a -> wait -> end", a=user(candidate_groups=(parse("${'billing'}"),)), wait=catch(on="PAID"))
    )
    cases.started(committed_db, business_key="7")
    task = cases.the_task(committed_db, "a")
    with watching() as watch:
        claim(committed_db, task, actor=ADA, request_id="c")
    assert levels(watch) == [["LEAF", "REQUEST"]]
    with watching() as watch:
        assert isinstance(complete_task(committed_db, task, actor=ADA, variables={}, request_id="d"), TaskCompleted)
    [taken] = levels(watch)
    assert taken[:2] == ["ROOT", "LEAF"] and taken[-2:] == ["REQUEST", "KEYS"]
    with watching() as watch:
        assert isinstance(publish_message(committed_db, "PAID", actor=OP, correlation_key="7", variables={}), MessagePublished)
    looked, correlated = levels(watch)
    assert looked == ["KEYS"]  # it looks, and lets go of everything
    assert correlated[:2] == ["ROOT", "LEAF"] and "KEYS" not in correlated
    with watching() as watch:
        assert isinstance(deploy(committed_db, [("p", process(**message("NEW")))], actor=OP), Deployed)
        assert isinstance(deploy(committed_db, [("p", process(**message("NEW"), name="newer"))], actor=OP), Deployed)
    assert levels(watch)[1][:2] == ["DEPLOYMENT", "DEFINITION"] and levels(watch)[1][-1] == "KEYS"


def test_every_fragment_is_recognised_as_what_it_declares() -> None:
    for level, text in locks.FRAGMENTS:
        found = [lock.level for lock in locks_of(text)]
        assert None not in found, text
        assert all(each is level for each in found), text
    assert {level for level, _ in locks.FRAGMENTS} == {Level.ROOT, Level.DEFINITION, Level.LEAF}
