"""Starting an instance, by a person and by a timer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest

from engine.bpmn.definition import Problem, ProcessDefinition
from engine.commands.jobs import complete_job
from engine.commands.outcome import InstanceStarted, ItemDone, Refusal, Rejected
from engine.commands.start import start_instance
from engine.commands.start_by_timer import first_occurrence, start_by_timer, write_occurrence
from engine.db.acquire import recover_expired
from engine.db.definitions import DefinitionRefused, keep, reads_clock
from engine.expressions import parse
from tests.cast import ADA, BO, engage
from tests.commands.cases import acquired, deployed, kinds, places, started, status
from tests.commands.test_execute_counts import counting
from tests.conftest import Clock
from tests.core.models import catch, model, par, service, start, timer, user
from tests.rows import columns, definition, everything, one


@pytest.fixture
def conn(committed_db: psycopg.Connection) -> psycopg.Connection:
    engage(committed_db)
    return committed_db


def simple() -> ProcessDefinition:
    return model(
        "start -> check -> end", check=user("Prüfung", candidate_groups=(parse("${'billing,hr'}"),), candidate_users=(parse("${'cy'}"),))
    )


def test_an_instance_starts_with_its_task_in_every_candidates_inbox(conn: psycopg.Connection) -> None:
    key = deployed(conn, simple())

    begun = start_instance(conn, "model", actor=ADA, variables={"amount": 33}, business_key="A-1", request_id="s1")

    assert isinstance(begun, InstanceStarted)
    assert (begun.definition_id, begun.key, begun.version, begun.ended) == (key, "model", 1, False)
    assert columns(conn, "process_instance", begun.instance_id, "root_id", "business_key", "status", "started_by") == (
        begun.instance_id,
        "A-1",
        "running",
        "ada",
    )
    row = conn.execute("SELECT name, sort_key, process_name, business_key, status, assignee FROM user_task").fetchone()
    assert row == ("Prüfung", "prufung", "Model", "A-1", "open", None)
    entries = conn.execute(
        "SELECT e.kind, e.name, e.created_at = t.created_at FROM inbox_entry e JOIN user_task t ON t.id = e.task_id"
    ).fetchall()
    assert sorted(entries) == [("group", "billing", True), ("group", "hr", True), ("user", "cy", True)]
    assert kinds(conn, begun.instance_id)[0] == "instance_started"


def test_R10_a_repeated_start_starts_one_instance(conn: psycopg.Connection) -> None:
    deployed(conn, simple())
    first = started(conn, request_id="s1")
    before = everything(conn)
    assert start_instance(conn, "model", actor=ADA, variables={}, request_id="s1") == first
    assert everything(conn) == before
    assert started(conn, actor=BO, request_id="s1").instance_id != first.instance_id, "the id is the actor's own"


def test_R10_a_repeat_is_answered_even_when_the_definition_has_been_suspended_since(conn: psycopg.Connection) -> None:
    deployed(conn, simple())
    first = started(conn, request_id="s1")
    conn.execute("UPDATE process_definition SET status = 'suspended'")
    assert start_instance(conn, "model", actor=ADA, variables={}, request_id="s1") == first


def test_the_newest_version_is_started_unless_one_is_named(conn: psycopg.Connection) -> None:
    deployed(conn, simple(), version=1)
    second = deployed(conn, simple(), version=2)
    assert started(conn).definition_id == second
    assert started(conn, version=1).version == 1


def test_S17_while_the_newest_version_is_being_deleted_the_one_before_is_started(conn: psycopg.Connection) -> None:
    deployed(conn, simple(), version=1)
    deployed(conn, simple(), version=2, status="deleting")
    assert started(conn).version == 1


@pytest.mark.parametrize(("state", "refusal"), [("suspended", Refusal.DEFINITION_SUSPENDED), ("deleting", Refusal.DEFINITION_DELETING)])
def test_nothing_starts_of_a_definition_that_is_not_active(conn: psycopg.Connection, state: str, refusal: Refusal) -> None:
    deployed(conn, simple(), status=state)
    before = everything(conn)
    refused = start_instance(conn, "model", actor=ADA, variables={}, request_id="s1")
    assert isinstance(refused, Rejected) and refused.refusal is refusal
    assert everything(conn) == before


def test_an_unknown_key_is_not_found(conn: psycopg.Connection) -> None:
    assert start_instance(conn, "nothing", actor=ADA, variables={}, request_id=None) == Rejected(Refusal.NOT_FOUND)


def test_what_was_sent_wrongly_is_named_all_at_once(conn: psycopg.Connection) -> None:
    deployed(conn, simple())
    refused = start_instance(conn, "model", actor=ADA, variables={"a`b": 1, "n": 2**64}, business_key="x" * 256, request_id="s1")
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.INVALID
    assert [problem.field for problem in refused.problems] == ["a`b", "n", "business_key"]
    assert one(conn, "SELECT count(*) FROM process_instance") == 0


def test_a_process_without_a_none_start_event_is_not_started_by_hand(conn: psycopg.Connection) -> None:
    deployed(conn, model("start -> check -> end", start=start(timer=timer("R/PT10M"))), has_none_start=False)
    refused = start_instance(conn, "model", actor=ADA, variables={}, request_id=None)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.INVALID


def test_S48_a_stored_version_that_newer_rules_refuse_is_flagged_and_stops_nothing_else(conn: psycopg.Connection) -> None:
    bad = definition(conn, "old", xml=b"<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL'><process/></definitions>")
    deployed(conn, simple())

    refused = start_instance(conn, "old", actor=ADA, variables={}, request_id=None)

    assert isinstance(refused, Rejected) and refused.refusal is Refusal.UNSUPPORTED
    assert refused.problems and isinstance(refused.problems[0], Problem)
    assert isinstance(start_instance(conn, "model", actor=ADA, variables={}, request_id=None), InstanceStarted)
    assert one(conn, "SELECT status FROM process_definition WHERE id = %s", bad) == "active"


def test_S48_a_job_of_a_refused_version_fails_with_an_incident_and_is_not_tried_again(conn: psycopg.Connection) -> None:
    key = deployed(conn, model("start -> score -> end", score=service()))
    started(conn)
    keep(key, DefinitionRefused("model version 1", (Problem("score", 3, "a scriptTask", "a supported element"),)))
    (lease,) = acquired(conn)
    failed = complete_job(conn, lease, variables={})
    assert complete_job(conn, lease, variables={}) == failed
    assert conn.execute("SELECT j.status, i.kind FROM job j JOIN incident i ON i.job_id = j.id").fetchall() == [("failed", "unsupported")]


def test_a_process_that_waits_for_nothing_ends_at_once_and_leaves_one_row(conn: psycopg.Connection) -> None:
    deployed(conn, model("start -> end"))
    begun = started(conn, variables={"a": None})
    assert begun.ended and status(conn, begun.instance_id) == "completed"
    assert one(conn, "SELECT final_variables FROM process_instance") == {"a": {"type": "null", "value": None}}
    for table in ("token", "scope", "variable"):
        assert one(conn, f"SELECT count(*) FROM {table}") == 0, table


def test_a_null_is_stored_as_a_null(conn: psycopg.Connection) -> None:
    deployed(conn, simple())
    started(conn, variables={"a": None})
    assert conn.execute("SELECT type, value FROM variable").fetchall() == [("null", None)]


def test_a_step_with_everything_at_once_is_written_in_two_statements_of_one_transaction(conn: psycopg.Connection) -> None:
    branches = {
        "a": user(assignee=parse("${'ada'}")),
        "b": service(),
        "c": service("outside", work="external"),
        "d": catch(on="PAID"),
        "e": catch(after="PT1H"),
        "f": user(assignee=parse("${missing.name}")),
    }
    deployed(conn, model("start -> par -> a", *(f"par -> {name}" for name in "bcdef"), par=par(), **branches))

    begun = started(conn, variables={"x": 1}, business_key="42", request_id="s1")

    assert dict(places(conn, begun.instance_id)) == {**dict.fromkeys("abcde", "waiting"), "f": "failed"}
    counts = {
        table: one(conn, f"SELECT count(*) FROM {table}") for table in ("user_task", "job", "external_task", "subscription", "incident")
    }
    assert counts == {"user_task": 1, "job": 2, "external_task": 1, "subscription": 1, "incident": 1}
    assert one(conn, "SELECT count(DISTINCT xmin::text) FROM (SELECT xmin FROM user_task UNION ALL SELECT xmin FROM external_task) x") == 1
    assert begun.next_task_id == one(conn, "SELECT id FROM user_task")


# ---- start timers


def clockwork(conn: psycopg.Connection, cycle: str, clock: Clock) -> UUID:
    definition_model = model("tick -> check -> end", tick=start(timer=timer(cycle)), check=user())
    key = deployed(conn, definition_model, has_none_start=False)
    now = one(conn, "SELECT baton_clock()")
    first = first_occurrence(definition_model.nodes["tick"].config.timer, now)
    assert first is not None
    write_occurrence(conn, "", key, "tick", first)
    return key


def test_a_start_timer_starts_an_instance_and_writes_its_next_occurrence_in_one_transaction(conn: psycopg.Connection, clock: Clock) -> None:
    clockwork(conn, "R/2020-01-01T00:00:00+00:00/PT15M", clock)
    first: datetime = one(conn, "SELECT due_at FROM job")
    assert first.astimezone(UTC).minute % 15 == 0, "S16: the grid is the anchor's"
    clock.advance(minutes=15)
    (lease,) = acquired(conn)

    done = start_by_timer(conn, lease)

    assert isinstance(done, ItemDone) and done.instance_id is not None
    assert places(conn, done.instance_id) == [("check", "waiting")]
    assert conn.execute("SELECT due_at, status FROM job").fetchall() == [(first + timedelta(minutes=15), "available")]
    assert one(conn, "SELECT count(DISTINCT xmin::text) FROM (SELECT xmin FROM job UNION ALL SELECT xmin FROM token) x") == 1
    assert start_by_timer(conn, lease) == ItemDone(lease.item_id, lease.number, done.instance_id, repeated=True)
    assert one(conn, "SELECT count(*) FROM process_instance") == 1


def test_R4_a_start_timer_whose_lease_was_lost_starts_nothing(conn: psycopg.Connection, clock: Clock) -> None:
    clockwork(conn, "R3/PT15M", clock)
    clock.advance(minutes=16)
    (lease,) = acquired(conn)
    clock.advance(seconds=31)
    recover_expired(conn, limit=10)
    late = start_by_timer(conn, lease)
    assert isinstance(late, Rejected) and late.refusal is Refusal.LEASE_LOST
    assert one(conn, "SELECT count(*) FROM process_instance") == 0


def test_a_start_timer_of_a_suspended_definition_starts_nothing(conn: psycopg.Connection, clock: Clock) -> None:
    clockwork(conn, "R3/PT15M", clock)
    clock.advance(minutes=16)
    (lease,) = acquired(conn)
    conn.execute("UPDATE process_definition SET status = 'suspended'")
    refused = start_by_timer(conn, lease)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.DEFINITION_SUSPENDED
    assert one(conn, "SELECT count(*) FROM process_instance") == 0


# ---- starting by memory: without a look, what this process started before


def test_a_process_that_was_started_before_is_started_without_a_look(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(conn, simple())
    started(conn)
    with counting(monkeypatch) as asked:
        started(conn)
    assert len(asked) == 1 and asked[0].startswith("WITH definition")


def test_a_version_deployed_meanwhile_is_the_one_that_starts(conn: psycopg.Connection) -> None:
    deployed(conn, simple())
    started(conn)
    second = deployed(conn, simple(), version=2)
    assert started(conn).definition_id == second
    conn.execute("UPDATE process_definition SET status = 'deleting' WHERE id = %s", (second,))
    assert started(conn).version == 1


@pytest.mark.parametrize(("state", "refusal"), [("suspended", Refusal.DEFINITION_SUSPENDED), ("deleting", Refusal.DEFINITION_DELETING)])
def test_what_was_started_before_is_refused_once_it_is_not_active(conn: psycopg.Connection, state: str, refusal: Refusal) -> None:
    deployed(conn, simple())
    started(conn)
    conn.execute("UPDATE process_definition SET status = %s", (state,))
    before = everything(conn)
    refused = start_instance(conn, "model", actor=ADA, variables={}, request_id="s2")
    assert isinstance(refused, Rejected) and refused.refusal is refusal
    assert everything(conn) == before


@pytest.mark.parametrize(
    ("element", "reads"),
    [
        (user(), False),
        (user("${now}", about=parse("since ${now}")), True),
        (user(due=parse("P1D")), True),
        (catch(after="PT1H"), True),
        (catch(on="PAID"), False),
        (service(inputs={"at": "${now}"}), True),
        (service(inputs={"at": "${dateTime().plusDays(2)}"}), True),
        (user("", about=parse("= string(today())", language="feel")), True),
        (user("", about=parse("= string length(name)", language="feel")), False),
    ],
)
def test_only_processes_that_do_not_ask_for_the_time_are_started_by_memory(element: object, reads: bool) -> None:
    assert reads_clock(model("start -> it -> end", it=element)) is reads
