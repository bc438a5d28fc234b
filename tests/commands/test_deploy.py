"""Deployments: atomic, versioned by content, and the newest version takes over what starts instances."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from engine.commands.deploy import deploy
from engine.commands.messages import publish_message
from engine.commands.outcome import Deployed, ItemDone, MessagePublished, Refusal, Rejected
from engine.commands.start import start_instance
from engine.commands.start_by_timer import start_by_timer
from engine.commands.workers import Beat, beat
from engine.db.workers import SILENT_AFTER_SECONDS
from engine.ids import new_id
from tests import rows
from tests.bpmn.models import HEADER, model
from tests.cast import ADA, OP
from tests.commands.cases import acquired
from tests.conftest import Clock

Connection = psycopg.Connection[Any]
NONE = '<startEvent id="s"/>'
DONE = '<sequenceFlow id="f" sourceRef="s" targetRef="e"/><endEvent id="e"/>'


def process(key: str = "p", *, start: str = NONE, name: str = "", root: str = "", rest: str = "") -> bytes:
    text = f'{HEADER}{root}<process id="{key}" name="{name}" isExecutable="true">\n{start}\n{DONE}\n{rest}</process></definitions>'
    return text.encode()


def timer(kind: str, text: str) -> str:
    return f'<startEvent id="s"><timerEventDefinition><{kind}>{text}</{kind}></timerEventDefinition></startEvent>'


def message(name: str) -> dict[str, str]:
    return {
        "root": f'<message id="m" name="{name}"/>\n',
        "start": '<startEvent id="s"><messageEventDefinition messageRef="m"/></startEvent>',
    }


def put(conn: Connection, *files: bytes, request_id: str | None = None) -> Deployed:
    outcome = deploy(conn, [(f"{n}.bpmn", data) for n, data in enumerate(files)], actor=OP, request_id=request_id)
    assert isinstance(outcome, Deployed), outcome
    return outcome


def versions(conn: Connection, key: str = "p") -> int:
    count: int = rows.one(conn, "SELECT count(*) FROM process_definition WHERE key = %s", key)
    return count


def due(conn: Connection) -> list[datetime]:
    return [row[0] for row in conn.execute("SELECT due_at FROM job WHERE kind = 'start_timer' ORDER BY due_at")]


def test_files_are_deployed_together_and_each_process_gets_its_first_version(committed_db: Connection) -> None:
    done = put(committed_db, process("a", name="Alpha"), process("b"))
    assert [(d.key, d.version, d.name, d.file, d.unchanged) for d in done.definitions] == [
        ("a", 1, "Alpha", "0.bpmn", False),
        ("b", 1, "b", "1.bpmn", False),
    ]
    found = rows.columns(committed_db, "process_definition", done.definitions[0].id, "name", "sort_key", "deployment_id", "xml")
    assert found == ("Alpha", "alpha", done.deployment_id, process("a", name="Alpha"))
    events = committed_db.execute("SELECT kind, actor, data->>'key' FROM history ORDER BY id").fetchall()
    assert events == [("definition_deployed", "op", "a"), ("definition_deployed", "op", "b")]
    assert rows.one(committed_db, "SELECT actor || ' ' || action FROM audit") == "op deploy"


def test_S49_the_same_file_again_makes_no_new_version(committed_db: Connection) -> None:
    first = put(committed_db, process())
    before = rows.everything(committed_db)
    again = put(committed_db, process())
    assert again.deployment_id is None
    assert [(d.id, d.version, d.unchanged) for d in again.definitions] == [(first.definitions[0].id, 1, True)]
    assert rows.everything(committed_db) == before


def test_S49_other_line_ends_blanks_comments_and_attribute_order_make_no_new_version(committed_db: Connection) -> None:
    put(committed_db, process())
    text = process().decode()
    crlf = text.replace("\n", "\r\n\r\n").replace("<endEvent", "\r\n\t<!-- the end -->\r\n\t<endEvent")
    swapped = text.replace('id="f" sourceRef="s" targetRef="e"', "targetRef='e'  sourceRef='s' id='f'")
    for other in (crlf, swapped, "\ufeff" + text, '<?xml version="1.0" encoding="UTF-8"?>\n' + text):
        assert [d.unchanged for d in put(committed_db, other.encode()).definitions] == [True]
    assert versions(committed_db) == 1


def test_S49_the_same_content_under_another_file_name_makes_no_new_version(committed_db: Connection) -> None:
    put(committed_db, process())
    again = deploy(committed_db, [("moved and renamed.bpmn", process())], actor=OP)
    assert isinstance(again, Deployed)
    assert [(definition.version, definition.unchanged) for definition in again.definitions] == [(1, True)]
    assert versions(committed_db) == 1


def test_a_changed_name_is_a_new_version_and_older_content_a_newest_one(committed_db: Connection) -> None:
    old, new = process(name="Old"), process(name="New")
    assert [put(committed_db, data).definitions[0].version for data in (old, new, old, old)] == [1, 2, 3, 3]


def test_only_what_changed_in_a_deployment_gets_a_version(committed_db: Connection) -> None:
    put(committed_db, process("a"), process("b"))
    done = put(committed_db, process("a"), process("b", name="B"), process("c"))
    assert [(d.key, d.version, d.unchanged) for d in done.definitions] == [("a", 1, True), ("b", 2, False), ("c", 1, False)]


def test_S48_a_broken_file_among_three_stores_nothing_and_lists_every_problem(committed_db: Connection) -> None:
    put(committed_db, process("good", start=timer("timeCycle", "R/PT15M")))
    before = rows.everything(committed_db)
    files = [
        ("good.bpmn", process("good", name="changed")),
        ("faults.bpmn", model("s48_faults")),
        ("one.bpmn", model("s48_one_key")),
        ("again.bpmn", model("s48_one_key_again")),
    ]
    refused = deploy(committed_db, files, actor=OP, request_id="1")
    assert isinstance(refused, Rejected)
    assert refused.refusal is Refusal.INVALID
    named = {(p.file, p.element_id) for p in refused.problems}
    assert {("faults.bpmn", "f9"), ("faults.bpmn", "late"), ("faults.bpmn", "no_message"), ("again.bpmn", "shared_key")} <= named
    assert all(p.line is not None for p in refused.problems if p.file == "faults.bpmn")
    assert rows.everything(committed_db) == before
    assert rows.one(committed_db, "SELECT count(*) FROM request") == 0


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04zip", b"<a>" + b" " * 20_000_000, b"no xml at all"], ids=["empty", "zip", "20 MB", "text"]
)
def test_S48_what_is_no_model_is_refused(committed_db: Connection, data: bytes) -> None:
    refused = deploy(committed_db, [("x.bpmn", data)], actor=OP)
    assert isinstance(refused, Rejected)
    assert [p.file for p in refused.problems] == ["x.bpmn"]
    assert rows.one(committed_db, "SELECT count(*) FROM deployment") == 0


def test_S63_a_doctype_is_refused(committed_db: Connection) -> None:
    hostile = b'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + process()
    assert isinstance(deploy(committed_db, [("x.bpmn", hostile)], actor=OP), Rejected)


def test_no_file_and_two_files_of_one_name_are_refused(committed_db: Connection) -> None:
    for files in ([], [("a", process("a")), ("a", process("b"))]):
        refused = deploy(committed_db, files, actor=OP)
        assert isinstance(refused, Rejected)
        assert len(refused.problems) == 1


def test_R13_only_operators_deploy(committed_db: Connection) -> None:
    assert deploy(committed_db, [("a", process())], actor=ADA) == Rejected(Refusal.NOT_ALLOWED)


@pytest.mark.parametrize("twice", [(process(),), (process("a"), process("b"))], ids=["one", "two"])
def test_R10_the_same_request_again_is_answered_alike_whatever_came_between(committed_db: Connection, twice: Sequence[bytes]) -> None:
    first = put(committed_db, *twice, request_id="1")
    put(committed_db, process(name="between"), process("a", name="between"))
    assert put(committed_db, *twice, request_id="1") == first
    assert put(committed_db, *twice, request_id="2") != first


# ---- start timers


def fire(conn: Connection) -> None:
    [lease] = acquired(conn)
    assert isinstance(start_by_timer(conn, lease), ItemDone)


def test_S16_S49_deploying_again_does_not_shift_the_grid_of_an_unchanged_timer(committed_db: Connection, clock: Clock) -> None:
    put(committed_db, process(start=timer("timeCycle", "R/PT15M")))
    [first] = due(committed_db)
    clock.advance(minutes=10)
    put(committed_db, process(start=timer("timeCycle", "R/PT15M")))
    assert due(committed_db) == [first]
    put(committed_db, process(start=timer("timeCycle", "R/PT15M"), name="changed elsewhere"))
    assert due(committed_db) == [first]
    clock.advance(minutes=6)
    fire(committed_db)
    assert due(committed_db) == [first + timedelta(minutes=15)]
    assert rows.one(committed_db, "SELECT d.version FROM process_instance i JOIN process_definition d ON d.id = i.definition_id") == 2


def test_S16_a_cycle_anchored_in_the_past_keeps_its_anchor(committed_db: Connection) -> None:
    put(committed_db, process(start=timer("timeCycle", "R/2026-07-01T00:00:00+02:00/PT15M")))
    [first] = due(committed_db)
    assert (first.minute % 15, first.second, first.microsecond) == (0, 0, 0)
    assert timedelta(0) <= first - rows.one(committed_db, "SELECT baton_now()") <= timedelta(minutes=15)


def test_S16_a_date_in_the_past_starts_at_once_and_not_again_with_the_next_version(committed_db: Connection) -> None:
    put(committed_db, process(start=timer("timeDate", "2026-01-01T00:00:00Z")))
    fire(committed_db)
    put(committed_db, process(start=timer("timeDate", "2026-01-01T00:00:00Z"), name="changed"))
    assert due(committed_db) == []
    put(committed_db, process(start=timer("timeDate", "2026-01-02T00:00:00Z")))
    fire(committed_db)
    assert rows.one(committed_db, "SELECT count(*) FROM process_instance") == 2


def test_a_changed_timer_is_scheduled_anew_and_the_old_one_is_gone(committed_db: Connection) -> None:
    put(committed_db, process(start=timer("timeCycle", "R/PT15M")))
    put(committed_db, process(start=timer("timeCycle", "R/PT1H")))
    [found] = due(committed_db)
    assert timedelta(minutes=59) < found - rows.one(committed_db, "SELECT baton_now()") <= timedelta(hours=1)
    put(committed_db, process())
    assert due(committed_db) == []


def test_R4_a_start_timer_leased_while_its_version_was_replaced_starts_nothing(committed_db: Connection, clock: Clock) -> None:
    put(committed_db, process(start=timer("timeCycle", "R/PT15M")))
    clock.advance(minutes=16)
    [late] = acquired(committed_db)
    put(committed_db, process(start=timer("timeCycle", "R/PT15M"), name="changed"))
    refused = start_by_timer(committed_db, late)
    assert isinstance(refused, Rejected)
    assert refused.refusal is Refusal.LEASE_LOST
    fire(committed_db)
    assert rows.one(committed_db, "SELECT count(*) FROM process_instance") == 1


def test_a_start_event_that_cannot_be_judged_is_a_problem_of_its_element(committed_db: Connection) -> None:
    wrong = process(start=timer("timeDate", "${nobody}"))
    refused = deploy(committed_db, [("a", wrong)], actor=OP)
    assert isinstance(refused, Rejected)
    assert [p.element_id for p in refused.problems] == ["s"]


# ---- start subscriptions


def test_the_newest_version_receives_the_start_message(committed_db: Connection) -> None:
    put(committed_db, process(**message("NEW")))
    put(committed_db, process(**message("NEW"), name="second"))
    outcome = publish_message(committed_db, "NEW", actor=OP, correlation_key="order-7", variables={"a": 1})
    assert isinstance(outcome, MessagePublished)
    assert (outcome.outcome, outcome.started) == ("correlated", True)
    found = committed_db.execute(
        "SELECT d.version, i.business_key, i.final_variables FROM process_instance i JOIN process_definition d ON d.id = i.definition_id"
    ).fetchall()
    assert found == [(2, "order-7", {"a": {"type": "integer", "value": 1}})]

    put(committed_db, process(**message("NEW2")))
    assert publish_message(committed_db, "NEW", actor=OP, variables={}).refusal is Refusal.NO_SUBSCRIPTION
    assert rows.one(committed_db, "SELECT message_name FROM subscription") == "NEW2"


def test_a_process_without_a_none_start_is_not_started_by_hand(committed_db: Connection) -> None:
    put(committed_db, process(**message("NEW")))
    refused = start_instance(committed_db, "p", actor=ADA, variables={})
    assert isinstance(refused, Rejected)
    assert refused.refusal is Refusal.INVALID


def test_a_message_stored_before_is_delivered_to_a_start_event_deployed_later(committed_db: Connection) -> None:
    publish_message(committed_db, "NEW", actor=OP, variables={}, time_to_live_seconds=60)
    put(committed_db, process(**message("NEW")))
    assert rows.one(committed_db, "SELECT kind FROM job") == "message"


def test_a_handler_that_no_worker_alive_knows_is_warned_about_and_deployed(committed_db: Connection, clock: Clock) -> None:
    bound = process(
        rest='<serviceTask id="ship" name="Ship it" xmlns:camunda="http://camunda.org/schema/1.0/bpmn" camunda:class="a.Ship"/>'
    )
    bound = bound.replace(b'targetRef="e"', b'targetRef="ship"')
    bound = bound.replace(b"</process>", b'<sequenceFlow id="g" sourceRef="ship" targetRef="e"/></process>')

    def warned() -> list[tuple[str | None, str]]:
        return [(each.element_id, each.what) for each in put(committed_db, bound).definitions[0].warnings if "worker" in each.what]

    told = [("ship", "Ship it is bound to the handler 'a.Ship', which no worker knows")]
    assert warned() == told
    said = Beat(new_id(), "here", 1, "1", slots=1, busy=0, kinds=[["service", "a.Ship"], ["deliver", "http"]])
    beat(committed_db, said, alive_seconds=SILENT_AFTER_SECONDS)
    assert warned() == []
    clock.advance(seconds=SILENT_AFTER_SECONDS + 1)
    assert warned() == told
