"""Cases for the screens of operations, made by the engine's own commands from the shipped samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from engine.commands.deploy import deploy
from engine.commands.outcome import Actor, Deployed, InstanceStarted, Lease
from engine.commands.start import start_instance
from engine.db.acquire import acquire_jobs
from engine.ids import new_id
from tests.web.rows import Rows

SAMPLES = Path(__file__).parents[2] / "cli" / "samples"
OLGA = Actor("olga", role="operator", display_name="Olga Petrova")
ADA = Actor("ada", groups=frozenset({"clerks"}), display_name="Ada Moreno")

BROKEN = b"""<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"
  targetNamespace="t">
  <process id="%s" name="%s" isExecutable="true">
    <startEvent id="begin"><outgoing>f1</outgoing></startEvent>
    <sequenceFlow id="f1" sourceRef="begin" targetRef="work"/>
    <serviceTask id="work" name="%s" camunda:type="external" camunda:topic="%s"><incoming>f1</incoming><outgoing>f2</outgoing></serviceTask>
    <sequenceFlow id="f2" sourceRef="work" targetRef="done"/>
    <endEvent id="done"><incoming>f2</incoming></endEvent>
  </process>
</definitions>
"""


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.bpmn").read_bytes()


def deployed(conn: psycopg.Connection[Any], *names: str) -> Deployed:
    files = [(f"{name}.bpmn", sample(name)) for name in names]
    outcome = deploy(conn, files, actor=OLGA)
    assert isinstance(outcome, Deployed), outcome
    return outcome


def started(conn: psycopg.Connection[Any], key: str, *, actor: Actor = ADA, business_key: str | None = None, **variables: Any) -> UUID:
    outcome = start_instance(conn, key, actor=actor, variables=variables, business_key=business_key)
    assert isinstance(outcome, InstanceStarted), outcome
    return outcome.instance_id


def one(conn: psycopg.Connection[Any], sql: str, *params: Any) -> Any:
    row = conn.execute(sql, params).fetchone()
    assert row is not None, sql
    return row[0]


Client = Callable[[str], Any]

__all__ = ["ADA", "BROKEN", "OLGA", "Client", "Lease", "Rows", "acquire_jobs", "deployed", "new_id", "one", "sample", "started"]
