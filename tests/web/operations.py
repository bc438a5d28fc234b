"""Cases for the screens of operations, made by the engine's own commands from the shipped samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from engine.commands.api_keys import add_api_key
from engine.commands.deploy import deploy
from engine.commands.external_tasks import acquire_external_tasks, fail_external_task
from engine.commands.outcome import Actor, ApiKeyAdded, Deployed, InstanceStarted, ItemFailed
from engine.commands.start import start_instance
from tests.web.conftest import Browser

SAMPLES = Path(__file__).parents[2] / "cli" / "samples"
OLGA = Actor("olga", role="operator", display_name="Olga Petrova")
ADA = Actor("ada", groups=frozenset({"clerks"}), display_name="Ada Moreno")

MODELS = Path(__file__).parents[1] / "models"


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.bpmn").read_bytes()


def model(name: str) -> bytes:
    return (MODELS / f"{name}.bpmn").read_bytes()


def deployed(conn: psycopg.Connection[Any], *names: str) -> Deployed:
    """Samples, or models of the tests, by file name."""
    files = [(f"{name}.bpmn", sample(name) if (SAMPLES / f"{name}.bpmn").exists() else model(name)) for name in names]
    outcome = deploy(conn, files, actor=OLGA)
    assert isinstance(outcome, Deployed), outcome
    return outcome


def started(conn: psycopg.Connection[Any], key: str, *, actor: Actor = ADA, business_key: str | None = None, **variables: Any) -> UUID:
    outcome = start_instance(conn, key, actor=actor, variables=variables, business_key=business_key)
    assert isinstance(outcome, InstanceStarted), outcome
    return outcome.instance_id


def one(conn: psycopg.Connection[Any], sql: str, *params: Any) -> Any:
    """The first column of the only row."""
    row = conn.execute(sql, params).fetchone()
    assert row is not None, sql
    return row[0]


def api_key(conn: psycopg.Connection[Any], username: str) -> str:
    made = add_api_key(conn, username, actor=Actor("root", role="administrator"), name="a test")
    assert isinstance(made, ApiKeyAdded), made
    return made.token


def failed_external_task(conn: psycopg.Connection[Any], *, business_key: str = "ORD-1", error: str = "CarrierDown: 503") -> UUID:
    """An external task that used up its attempts, beside its incident. Deploy `an_external_task` before."""
    started(conn, "shipping", business_key=business_key)
    [task] = acquire_external_tasks(conn, actor=OLGA, worker_id="w", topics=["ship"], limit=1)
    failed = fail_external_task(conn, task.id, actor=OLGA, lease_number=task.lease_number, error=error, final=True)
    assert isinstance(failed, ItemFailed) and failed.status == "failed", failed
    return task.id


Client = Callable[[str], Browser]
