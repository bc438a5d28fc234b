"""Deleting a version: refused while it is used; the one before it counts again, in the same transaction."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from engine.commands.delete_version import delete_version
from engine.commands.deploy import deploy
from engine.commands.messages import publish_message
from engine.commands.outcome import Deployed, InstanceStarted, ItemDone, MessagePublished, Refusal, Rejected, VersionDeleted
from engine.commands.signals import broadcast_signal, receive_signal, spread_signal
from engine.commands.start import start_instance
from engine.commands.start_by_timer import start_by_timer
from engine.commands.suspend_definition import suspend_definition
from engine.db import called, definitions
from engine.db.definitions import DefinitionRefused, keep
from tests import rows
from tests.bpmn.models import HEADER
from tests.cast import ADA, BO, OP, engage
from tests.commands.cases import acquired, deployed, the_task
from tests.commands.test_deploy import due, message, process, put, timer
from tests.conftest import Clock
from tests.core.models import call, model

Connection = psycopg.Connection[Any]


@pytest.fixture
def conn(committed_db: Connection) -> Connection:
    engage(committed_db)
    return committed_db


def version(conn: Connection, number: int, key: str = "p") -> UUID:
    found: UUID = rows.one(conn, "SELECT id FROM process_definition WHERE key = %s AND version = %s", key, number)
    return found


def delete(conn: Connection, number: int, *, reason: str = "a mistake", **values: Any) -> VersionDeleted | Rejected:
    return delete_version(conn, version(conn, number), actor=values.pop("actor", OP), reason=reason, **values)


def deleted(conn: Connection, number: int, **values: Any) -> VersionDeleted:
    outcome = delete(conn, number, **values)
    assert isinstance(outcome, VersionDeleted), outcome
    return outcome


def waiting(conn: Connection) -> list[tuple[str, str, int]]:
    """(kind, name, version) of what starts by itself."""
    return conn.execute(
        "SELECT s.kind, s.message_name, d.version FROM subscription s JOIN process_definition d ON d.id = s.definition_id"
        " WHERE s.instance_id IS NULL ORDER BY 1, 2"
    ).fetchall()


HALT = (
    '<userTask id="u" camunda:assignee="ada"/>'
    '<boundaryEvent id="b" attachedToRef="u"><messageEventDefinition messageRef="halt"/></boundaryEvent>'
    '<endEvent id="e2"/><sequenceFlow id="f2" sourceRef="b" targetRef="e2"/>'
)


def first_version() -> bytes:
    """Starts on NEW, and waits at a task that HALT interrupts."""
    flows = '<sequenceFlow id="f" sourceRef="s" targetRef="u"/><sequenceFlow id="f1" sourceRef="u" targetRef="e"/><endEvent id="e"/>'
    root = '<message id="m" name="NEW"/><message id="halt" name="HALT"/>\n'
    return f'{HEADER}{root}<process id="p" isExecutable="true">\n{message("NEW")["start"]}{HALT}{flows}</process></definitions>'.encode()


def publish(conn: Connection, name: str) -> MessagePublished | Rejected:
    return publish_message(conn, name, actor=OP, variables={})


def test_S17_a_new_version_starts_by_its_own_message_and_its_deletion_gives_the_old_one_back(conn: Connection) -> None:
    put(conn, first_version())
    running = publish(conn, "NEW")
    assert isinstance(running, MessagePublished) and running.started
    put(conn, process(**message("NEW2")))

    old = publish(conn, "NEW")
    assert isinstance(old, Rejected) and old.refusal is Refusal.NO_SUBSCRIPTION, "only NEW2 starts"
    halted = publish(conn, "HALT")
    assert isinstance(halted, MessagePublished) and halted.instance_id == running.instance_id, "an instance keeps what it waits for"
    assert isinstance(publish(conn, "NEW2"), MessagePublished)
    assert rows.one(conn, "SELECT count(*) FROM process_instance WHERE status = 'running'") == 0

    assert deleted(conn, 2) == VersionDeleted(version(conn, 2), "p", 2, newest=1)
    assert waiting(conn) == [("start", "NEW", 1)], "exactly once"
    again = publish(conn, "NEW")
    assert isinstance(again, MessagePublished) and again.started
    none = publish(conn, "NEW2")
    assert isinstance(none, Rejected) and none.refusal is Refusal.NO_SUBSCRIPTION
    assert rows.one(conn, "SELECT count(*) FROM process_instance WHERE definition_id = %s", version(conn, 2)) == 1


def test_S53_a_version_of_which_instances_run_is_not_deleted_and_everything_still_works(conn: Connection) -> None:
    put(conn, first_version())
    publish(conn, "NEW")
    publish(conn, "NEW")
    before = rows.everything(conn)
    refused = delete(conn, 1)
    assert isinstance(refused, Rejected)
    assert (refused.refusal, refused.status) == (Refusal.DEFINITION_IN_USE, 409)
    assert refused.detail == "2 instances of version 1 of p still run; cancel or finish them first"
    assert rows.everything(conn) == before, "a refusal changes nothing"
    assert isinstance(publish(conn, "HALT"), MessagePublished) and isinstance(publish(conn, "NEW"), MessagePublished)


def test_nothing_starts_by_a_version_that_is_deleted_and_its_history_stays(conn: Connection) -> None:
    put(conn, process())
    started = start_instance(conn, "p", actor=ADA, variables={})
    assert isinstance(started, InstanceStarted) and started.ended
    deleted(conn, 1)
    refused = start_instance(conn, "p", actor=ADA, variables={})
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.DEFINITION_DELETING
    assert rows.one(conn, "SELECT length(xml) > 0 FROM process_definition") is True
    events = conn.execute("SELECT kind, actor, data->>'reason' FROM history WHERE kind LIKE 'definition_d%%' ORDER BY id").fetchall()
    assert events == [("definition_deployed", "op", None), ("definition_deleted", "op", "a mistake")]
    noted = conn.execute("SELECT actor, action, object_kind, object_id, reason FROM audit ORDER BY id DESC LIMIT 1").fetchone()
    assert noted == ("op", "delete", "definition", str(version(conn, 1)), "a mistake")


@pytest.mark.parametrize("kept", [True, False])
def test_who_remembers_the_deleted_version_starts_and_calls_the_one_before_whether_or_not_it_is_kept(conn: Connection, kept: bool) -> None:
    put(conn, process())
    put(conn, process(name="newer"))
    deployed(conn, model("start -> ask -> end", ask=call("p")))

    def run(key: str) -> int:
        """By which version of p."""
        assert isinstance(start_instance(conn, key, actor=ADA, variables={}), InstanceStarted)
        last = "SELECT definition_id FROM process_instance ORDER BY started_at DESC, parent_id NULLS LAST LIMIT 1"
        found: int = rows.one(conn, f"SELECT version FROM process_definition WHERE id = ({last})")
        return found

    assert (run("p"), run("model")) == (2, 2)
    remembered, of_calls = definitions._newest.copy(), called._known.copy()
    assert version(conn, 2) in of_calls.values() and (version(conn, 2), 2) in remembered.values()
    deleted(conn, 2)  # by another process: it is no news here
    assert (definitions._newest, called._known) == (remembered, of_calls)
    if not kept:
        definitions._kept.pop(version(conn, 2))
    assert (run("p"), run("model")) == (1, 1)


def test_an_older_version_is_deleted_without_a_change_of_what_starts(conn: Connection) -> None:
    put(conn, process(**message("NEW")))
    put(conn, process(**message("NEW2")))
    assert deleted(conn, 1).newest is None
    assert waiting(conn) == [("start", "NEW2", 2)]
    assert deleted(conn, 2).newest is None
    assert waiting(conn) == []


def test_the_version_before_is_the_newest_that_is_not_deleted(conn: Connection) -> None:
    for name in ("A", "B", "C"):
        put(conn, process(**message(name)))
    deleted(conn, 2)
    assert deleted(conn, 3).newest == 1
    assert waiting(conn) == [("start", "A", 1)]


def test_a_deployment_after_a_deletion_replaces_what_was_restored_and_gives_no_number_again(conn: Connection) -> None:
    put(conn, process(**message("A")))
    put(conn, process(**message("B")))
    deleted(conn, 2)
    (same,) = put(conn, process(**message("A"))).definitions
    assert (same.version, same.unchanged) == (1, True), "the newest that is not deleted has this very content"
    (third,) = put(conn, process(**message("B"))).definitions
    assert (third.version, third.unchanged) == (3, False)
    assert waiting(conn) == [("start", "B", 3)]


def test_a_key_whose_versions_are_all_deleted_goes_on_with_the_next_number(conn: Connection) -> None:
    put(conn, process(**message("A")))
    deleted(conn, 1)
    (again,) = put(conn, process(**message("A"))).definitions
    assert (again.version, again.unchanged) == (2, False)
    assert waiting(conn) == [("start", "A", 2)]


def test_a_message_stored_meanwhile_is_delivered_to_the_restored_start_event(conn: Connection) -> None:
    put(conn, process(**message("NEW")))
    put(conn, process(**message("NEW2")))
    assert isinstance(publish_message(conn, "NEW", actor=OP, variables={}, time_to_live_seconds=60), MessagePublished)
    deleted(conn, 2)
    assert [lease.kind for lease in acquired(conn)] == ["job"]


def test_a_start_timer_that_is_the_same_goes_on_and_another_begins_anew(conn: Connection, clock: Clock) -> None:
    put(conn, process(start=timer("timeCycle", "R/PT1H")))
    (first,) = due(conn)
    clock.advance(minutes=90)
    (lease,) = acquired(conn)
    assert isinstance(start_by_timer(conn, lease), ItemDone)
    put(conn, process(start=timer("timeCycle", "R/PT1H"), name="renamed"))
    deleted(conn, 2)
    assert due(conn) == [first + timedelta(hours=1)], "the grid stays where it was"
    put(conn, process(start=timer("timeCycle", "R/PT5M")))
    assert deleted(conn, 3).newest == 1
    (anew,) = due(conn)
    assert anew > first + timedelta(hours=1)
    clock.advance(hours=2)
    (lease,) = acquired(conn)
    assert isinstance(start_by_timer(conn, lease), ItemDone), "nothing holds it: the version before is active"


def test_a_date_that_has_passed_starts_nothing_when_its_version_comes_back(conn: Connection, clock: Clock) -> None:
    put(conn, process(start=timer("timeDate", "2026-01-01T00:00:00Z")))
    (lease,) = acquired(conn)
    assert isinstance(start_by_timer(conn, lease), ItemDone)
    put(conn, process(name="two"))
    assert deleted(conn, 2).newest == 1
    assert due(conn) == []


def signal_start(name: str) -> bytes:
    start = '<startEvent id="s"><signalEventDefinition signalRef="m"/></startEvent>'
    return process(start=start, root=f'<signal id="m" name="{name}"/>\n')


def test_a_signal_start_event_comes_back_and_a_signal_on_its_way_to_the_deleted_version_ends_quietly(conn: Connection) -> None:
    put(conn, signal_start("A"))
    put(conn, signal_start("B"))
    broadcast_signal(conn, "B", actor=OP, variables={})
    (throw,) = acquired(conn)
    assert isinstance(spread_signal(conn, throw), ItemDone)
    assert deleted(conn, 2).newest == 1
    assert waiting(conn) == [("signal_start", "A", 1)]
    (delivery,) = acquired(conn)
    assert isinstance(receive_signal(conn, delivery), ItemDone)
    assert rows.one(conn, "SELECT count(*) FROM process_instance") == 0
    assert rows.one(conn, "SELECT data->>'outcome' FROM history WHERE item_id = %s", delivery.item_id) == "the version was deleted"


def test_a_signal_that_waited_along_with_the_suspended_version_ends_with_it(conn: Connection) -> None:
    definition = put(conn, signal_start("GO")).definitions[0].id
    broadcast_signal(conn, "GO", actor=OP, variables={})
    (throw,) = acquired(conn)
    spread_signal(conn, throw)
    suspend_definition(conn, definition, actor=OP)
    assert acquired(conn) == []
    deleted(conn, 1)
    (delivery,) = acquired(conn)
    assert isinstance(receive_signal(conn, delivery), ItemDone)
    assert rows.one(conn, "SELECT count(*) FROM job") == 0


def test_twice_is_harmless_and_a_second_one_hears_that_it_is_deleted(conn: Connection) -> None:
    put(conn, process())
    first = delete(conn, 1, request_id="1")
    before = rows.everything(conn)
    assert delete(conn, 1, request_id="1") == first
    other = delete(conn, 1, request_id="2")
    assert isinstance(other, Rejected) and other.refusal is Refusal.DEFINITION_DELETING
    assert rows.everything(conn) == before


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501, "a\x00"])
def test_a_deletion_without_a_good_reason_is_refused(conn: Connection, reason: str) -> None:
    put(conn, process())
    refused = delete(conn, 1, reason=reason)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.INVALID


def test_R13_only_operators_delete_and_what_is_not_there_is_not_found(conn: Connection) -> None:
    put(conn, process())
    for actor in (ADA, BO):
        refused = delete(conn, 1, actor=actor)
        assert isinstance(refused, Rejected) and refused.refusal is Refusal.NOT_ALLOWED
    nothing = delete_version(conn, uuid4(), actor=OP, reason="x")
    assert isinstance(nothing, Rejected) and nothing.refusal is Refusal.NOT_FOUND


def test_S48_a_version_whose_predecessor_newer_rules_refuse_is_not_deleted(conn: Connection) -> None:
    put(conn, process())
    put(conn, process(name="two"))
    keep(version(conn, 1), DefinitionRefused("p version 1", ()))
    refused = delete(conn, 2)
    assert isinstance(refused, Rejected) and refused.refusal is Refusal.UNSUPPORTED
    assert rows.one(conn, "SELECT count(*) FROM process_definition WHERE status = 'active'") == 2


def test_a_task_of_a_finished_instance_is_still_known(conn: Connection) -> None:
    assert isinstance(deploy(conn, [("p.bpmn", first_version())], actor=OP), Deployed)
    publish(conn, "NEW")
    the_task(conn, "u")
    publish(conn, "HALT")
    deleted(conn, 1)
    assert rows.one(conn, "SELECT status FROM user_task") == "cancelled"
