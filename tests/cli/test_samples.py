"""The sample processes: deployable without a warning, drawn as a whole, for the people there are, and they really do something."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count

import pytest
from lxml import etree

from cli.devservices import DevServer, SampleService
from cli.mailsink import MailBox, MailSink
from cli.samples import SERVICE, sample_files
from cli.samples.drive import CASES, Driver, Plan
from cli.samples.people import PEOPLE, make_sample_people
from engine.bpmn.calls import bound_in_vain
from engine.bpmn.reader import read_files
from engine.commands.deploy import deploy
from engine.commands.outcome import SYSTEM
from engine.queries.people import people
from tests.worker.processes import WorkerProcess, eventually
from webapp.auth.passwords import matches
from worker.handlers import load_handlers

NAMESPACES = {
    "b": "http://www.omg.org/spec/BPMN/20100524/MODEL",
    "di": "http://www.omg.org/spec/BPMN/20100524/DI",
    "dc": "http://www.omg.org/spec/DD/20100524/DC",
}


def test_every_sample_may_be_deployed_and_gives_no_cause_for_a_warning():
    result = read_files(sample_files())
    assert [(problem.file, problem.line, problem.what) for problem in (*result.problems, *result.warnings)] == []
    known = load_handlers(("cli.samples.handlers",))
    assert [bound_in_vain(definition, known) for _, definition in result.definitions] == [()] * len(CASES)
    assert {definition.key for _, definition in result.definitions} == set(CASES)


@pytest.mark.parametrize("file", sample_files(), ids=lambda file: file[0])
def test_every_element_of_a_sample_is_drawn_and_nothing_overlaps(file):
    tree = etree.fromstring(file[1])
    (definition,) = (found for _, found in read_files([file]).definitions)
    drawn = {shape.get("bpmnElement"): _bounds(shape) for shape in tree.iterfind(".//di:BPMNShape", NAMESPACES)}
    edges = {edge.get("bpmnElement") for edge in tree.iterfind(".//di:BPMNEdge", NAMESPACES)}
    assert set(drawn) == set(definition.nodes)
    assert edges == set(definition.flows)
    boxes = [node for node in definition.nodes.values() if node.kind != "boundary_event"]
    for one in boxes:
        for other in boxes:
            if one.id < other.id and one.parent == other.parent:
                assert not _overlap(drawn[one.id], drawn[other.id]), f"{one.id} and {other.id} overlap"
        if one.parent:
            assert _overlap(drawn[one.id], drawn[one.parent]), f"{one.id} is not drawn inside {one.parent}"


def _bounds(shape) -> tuple[float, float, float, float]:
    box = shape.find("dc:Bounds", NAMESPACES)
    x, y, width, height = (float(box.get(name)) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def _overlap(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def test_every_task_is_for_people_who_exist_and_says_what_it_is_about():
    groups = {group for person in PEOPLE for group in person.groups}
    asked = 0
    for _, content in sample_files():
        for task in etree.fromstring(content).iterfind(".//b:userTask", NAMESPACES):
            wanted = task.get("{http://camunda.org/schema/1.0/bpmn}candidateGroups")
            assert set(wanted.split(",")) <= groups
            assert task.get("{urn:baton:bpmn}about")
            asked += 1
    assert asked >= 8


def test_the_address_of_the_sample_service_is_written_in_at_deployment():
    elsewhere = "http://127.0.0.1:9"
    moved = dict(sample_files(service=elsewhere))
    assert all(SERVICE.encode() not in content for content in moved.values())
    assert sum(content.count(elsewhere.encode()) for content in moved.values()) >= 2


def test_the_sample_people_are_made_once_and_keep_what_was_changed(committed_db):
    make_sample_people(committed_db, "first password")
    committed_db.execute("UPDATE person SET role = 'administrator' WHERE username = 'olga'")
    make_sample_people(committed_db, "first password")
    make_sample_people(committed_db, "second password")
    found = {person.username: person for person in people(committed_db)}
    assert set(found) == {person.username for person in PEOPLE}
    assert found["olga"].role == "administrator"
    assert found["ada"].groups == found["bo"].groups == ["office"] != found["cy"].groups
    (stored,) = committed_db.execute("SELECT password_hash FROM person WHERE username = 'cy'").fetchone()
    assert matches(stored, "second password")


def test_deploying_the_samples_again_makes_no_new_version(committed_db):
    first = deploy(committed_db, sample_files(), actor=SYSTEM, name="samples")
    again = deploy(committed_db, sample_files(), actor=SYSTEM, name="samples")
    assert [definition.version for definition in (*first.definitions, *again.definitions)] == [1] * 8
    assert all(definition.unchanged for definition in again.definitions)


@pytest.fixture
def services(tmp_path) -> Iterator[tuple[SampleService, MailBox, str, int]]:
    """The sample service and the mail sink, in threads of this process; the service's URL and the sink's port."""
    service, mails = SampleService(seed=7), MailBox(tmp_path / "mails")
    service.behaviour = service.behaviour.changed({"delay_seconds": 0})
    with DevServer(("127.0.0.1", 0), service, mails) as http, MailSink(("127.0.0.1", 0), mails) as smtp:
        for server in (http, smtp):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        yield service, mails, f"http://127.0.0.1:{http.server_address[1]}", smtp.server_address[1]
        http.shutdown()
        smtp.shutdown()


@pytest.mark.slow
@pytest.mark.faults
def test_the_driver_takes_every_kind_of_sample_to_its_end_and_timers_fire(committed_db, database_url, clock, services, tmp_path):
    service, mails, url, smtp_port = services
    deploy(committed_db, sample_files(service=url), actor=SYSTEM, name="samples")
    said: list[str] = []
    driver = Driver(committed_db, Plan(60, failure_percent=15, seed=11), service=url, say=said.append)
    driver._set_failures(15)
    settings = {
        "handlers": "cli.samples.handlers",
        "sample_service": url,
        "mail_server": f"127.0.0.1:{smtp_port}",
        "allowed_networks": "127.0.0.1/32",
        "lease_seconds": "10",
    }
    ended = (
        "SELECT array_agg(DISTINCT d.key) FROM process_instance i JOIN process_definition d ON d.id = i.definition_id"
        " WHERE i.status = 'completed'"
    )
    with WorkerProcess(database_url, tmp_path / "worker.log", **settings):
        steps = count()

        def every_kind_has_ended() -> bool:
            driver.step()
            if next(steps) % 20 == 19:
                clock.advance(seconds=61)  # what fails is tried again, what nobody does falls due
            called = {call.system for call in service.calls} >= {"ledger", "warehouse"}
            failed = any(call.status == 503 for call in service.calls)
            return called and failed and set(committed_db.execute(ended).fetchone()[0] or ()) == set(CASES)

        eventually(every_kind_has_ended, "a completed case of every sample, both services called, some calls failed", seconds=120)
        fired = "SELECT count(*) FROM history WHERE kind = 'timer_fired'"

        def a_timer_has_fired() -> bool:
            driver.step()  # new cases wait for payments and decisions
            if next(steps) % 20 == 19:
                clock.advance(minutes=6)
            return committed_db.execute(fired).fetchone()[0] > 0

        eventually(a_timer_has_fired, "a timer that fired", seconds=120)
    assert {"started", "claimed", "completed", "paid"} <= set(driver.done)
    assert mails.newest()
    assert not committed_db.execute("SELECT array_agg(message) FROM incident WHERE kind = 'expression'").fetchone()[0]
