"""Calls that are bound to a version tag, as Camunda 7 and 8 write them: the newest version that has the tag is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from engine.commands.deploy import deploy
from engine.commands.outcome import Deployed
from engine.db.session import connect
from tests.bpmn.models import file_of
from tests.cast import OP, engage
from tests.commands.cases import started
from tests.rows import one

Connection = psycopg.Connection[Any]
ZEEBE_CALL = '<extensionElements><zeebe:calledElement processId="sub" bindingType="versionTag" versionTag="{}"/></extensionElements>'


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as conn:
        engage(conn)
        yield conn


def put(conn: Connection, task: str, tag: str, *, zeebe: bool = False) -> None:
    """A version of the process `sub`, which stands at a task."""
    attribute = "" if zeebe or not tag else f' camunda:versionTag="{tag}"'
    element = f'<extensionElements><zeebe:versionTag value="{tag}"/></extensionElements>' if zeebe else ""
    body = (
        f'{element}<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="{task}"/><userTask id="{task}"/>'
        f'<sequenceFlow id="f2" sourceRef="{task}" targetRef="e"/><endEvent id="e"/>'
    )
    data = file_of(body, attributes=f'isExecutable="true"{attribute}').replace(b'<process id="p"', b'<process id="sub"')
    assert isinstance(deploy(conn, [("sub.bpmn", data)], actor=OP), Deployed)


def put_caller(conn: Connection, call: str) -> None:
    body = (
        f'<startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="c"/>{call}'
        '<sequenceFlow id="f2" sourceRef="c" targetRef="e"/><endEvent id="e"/>'
    )
    assert isinstance(deploy(conn, [("p.bpmn", file_of(body))], actor=OP), Deployed)


def called_task(conn: Connection, **variables: Any) -> str | None:
    """The task at which what a new case calls stands; None if it called nothing."""
    begun = started(conn, "p", variables=variables)
    found = conn.execute(
        "SELECT t.element_id FROM user_task t JOIN process_instance i ON i.id = t.instance_id WHERE i.root_id = %s", (begun.instance_id,)
    ).fetchone()
    return found[0] if found else None


@pytest.mark.parametrize(
    "call",
    [
        '<callActivity id="c" calledElement="sub" camunda:calledElementBinding="versionTag" camunda:calledElementVersionTag="stable"/>',
        '<callActivity id="c" calledElement="sub" camunda:calledElementBinding="versionTag" camunda:calledElementVersionTag="${tag}"/>',
        f'<callActivity id="c">{ZEEBE_CALL.format("stable")}</callActivity>',
    ],
)
def test_the_newest_version_that_has_the_tag_is_called_and_another_once_it_is_deployed(conn: Connection, call: str) -> None:
    put(conn, "first", "stable")
    put(conn, "second", "next")
    put(conn, "third", "")
    put_caller(conn, call)
    assert called_task(conn, tag="stable") == "first"
    assert one(conn, "SELECT array_agg(version_tag ORDER BY version) FROM process_definition WHERE key = 'sub'") == ["stable", "next", None]
    put(conn, "fourth", "stable", zeebe=True)
    assert called_task(conn, tag="stable") == "fourth", "what was called before is not remembered"


def test_a_tag_that_no_version_has_is_an_incident_that_names_it(conn: Connection) -> None:
    put(conn, "first", "stable")
    call = '<callActivity id="c" calledElement="sub" camunda:calledElementBinding="versionTag" camunda:calledElementVersionTag="gone"/>'
    put_caller(conn, call)
    assert called_task(conn) is None
    message = one(conn, "SELECT message FROM incident WHERE element_id = 'c'")
    assert message == "c: expected the process sub with the version tag gone, found none that is deployed"
