"""Whole runs through the public commands on PostgreSQL: models deployed from files, people who act, a worker's steps, a clock.

`Stage` is the house: it deploys, starts, publishes, and works off what is due as a worker would: acquired under leases,
read as a batch, ended by commands. `Run` is one case on it, and tells what happened in order. A handler is a plain function
from variables to variables; it raises `Throws` for a BPMN error and any other exception to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from engine.commands.complete_task import complete_task
from engine.commands.deliver_message import deliver_message
from engine.commands.deploy import deploy
from engine.commands.jobs import complete_job, continue_loop, fail_job, fire_timer, throw_job_error
from engine.commands.messages import publish_message
from engine.commands.outcome import (
    Actor,
    Claimed,
    Deployed,
    InstanceStarted,
    ItemDone,
    ItemsHeld,
    Lease,
    MessagePublished,
    Rejected,
    SignalSpread,
    SignalThrown,
    TaskCompleted,
)
from engine.commands.signals import broadcast_signal, receive_signal, spread_signal
from engine.commands.start import start_instance
from engine.commands.start_by_timer import start_by_timer
from engine.commands.suspend import hold_step
from engine.commands.tasks import claim
from engine.commands.thrown_messages import publish_thrown
from engine.db.acquire import Acquired, acquire_jobs
from engine.db.load import Work, load_batch
from tests import rows
from tests.cast import ADA, CAST, OP, engage

MODELS = Path(__file__).parents[1] / "models"
Handler = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
_ENDS: dict[tuple[str, str], Callable[..., Any]] = {
    ("timer", ""): fire_timer,
    ("continue", ""): continue_loop,
    ("hold", ""): hold_step,
    ("start_timer", ""): start_by_timer,
    ("message", ""): deliver_message,
    ("throw", "signal"): spread_signal,
    ("throw", "message"): publish_thrown,
    ("signal", ""): receive_signal,
}
KINDS = tuple(_ENDS)


class Throws(Exception):
    """A handler's BPMN error."""

    def __init__(self, code: str, message: str = "", **variables: Any) -> None:
        super().__init__(code)
        self.code, self.message, self.variables = code, message, variables


@dataclass(frozen=True, slots=True)
class Leased:
    """One job in a worker's hands."""

    lease: Lease
    row: Acquired
    work: Work


class Stage:
    """One database with the cast engaged. `handlers`: what its workers can run."""

    def __init__(self, conn: psycopg.Connection[Any], handlers: Mapping[str, Handler] = {}) -> None:
        self.conn, self.handlers = conn, dict(handlers)
        engage(conn)

    # ---- what operators and people do

    def deploy(self, *names: str) -> Deployed:
        """Files of tests/models, in one deployment."""
        return self.deploy_files([(f"{name}.bpmn", (MODELS / f"{name}.bpmn").read_bytes()) for name in names])

    def deploy_files(self, files: Sequence[tuple[str, bytes]]) -> Deployed:
        outcome = deploy(self.conn, files, actor=OP)
        assert isinstance(outcome, Deployed), outcome
        return outcome

    def start(self, key: str, *, who: Actor = ADA, business_key: str | None = None, **variables: Any) -> Run:
        outcome = start_instance(self.conn, key, actor=who, variables=variables, business_key=business_key)
        assert isinstance(outcome, InstanceStarted), outcome
        return Run(self, outcome.instance_id)

    def begin(self, name: str, **values: Any) -> Run:
        """Deploy a model, whose key is its file's name, and start it."""
        self.deploy(name)
        return self.start(name, **values)

    def publish(self, name: str, key: Any = "", *, live: float | None = None, **variables: Any) -> MessagePublished | Rejected:
        return publish_message(self.conn, name, actor=OP, correlation_key=key, variables=variables, time_to_live_seconds=live)

    def signal(self, name: str, **variables: Any) -> SignalThrown:
        outcome = broadcast_signal(self.conn, name, actor=OP, variables=variables)
        assert isinstance(outcome, SignalThrown), outcome
        return outcome

    def runs(self, key: str) -> list[Run]:
        """All cases of a key, oldest first."""
        found = self.conn.execute(
            "SELECT i.id FROM process_instance i JOIN process_definition d ON d.id = i.definition_id"
            " WHERE d.key = %s ORDER BY i.started_at, i.id",
            (key,),
        )
        return [Run(self, row[0]) for row in found.fetchall()]

    # ---- what workers do

    def take(self, owner: str = "worker-1", *, seconds: float = 30, limit: int = 100) -> list[Leased]:
        """Lease what is due, and read what its handlers need."""
        kinds = [*KINDS, *(("service", topic) for topic in self.handlers)]
        acquired = acquire_jobs(self.conn, owner=owner, capabilities=kinds, limit=limit, lease_seconds=seconds, workers=2)
        batch = load_batch(self.conn, [item.item_id for item in acquired])
        return [
            Leased(
                Lease("job", item.item_id, item.number, owner, item.expires_at, {"lock_first": batch[item.item_id].lock_first}),
                item,
                batch[item.item_id],
            )
            for item in acquired
        ]

    def end(self, item: Leased) -> Any:
        """Run it and report: outcome of the command that ended it."""
        if (kind := (item.row.job_kind, item.row.topic)) in _ENDS:
            while isinstance(outcome := _ENDS[kind](self.conn, item.lease), ItemsHeld | SignalSpread):
                pass  # a step of several, under one lease
            return outcome
        try:
            result = self.handlers[item.row.topic](item.work.variables)
        except Throws as error:
            return throw_job_error(self.conn, item.lease, code=error.code, message=error.message, variables=error.variables)
        except Exception as error:
            return fail_job(self.conn, item.lease, error=str(error))
        return complete_job(self.conn, item.lease, variables=result or {})

    def work(self, owner: str = "worker-1") -> list[Any]:
        """Everything that is due now, one round after another; the outcomes."""
        outcomes: list[Any] = []
        while leased := self.take(owner):
            outcomes += [self.end(item) for item in leased]
        return outcomes


class Run:
    """One case."""

    def __init__(self, stage: Stage, instance_id: UUID) -> None:
        self.stage, self.conn, self.id = stage, stage.conn, instance_id

    # ---- what people do

    def claim(self, element: str, who: Actor) -> Claimed | Rejected:
        return claim(self.conn, self.task(element), actor=who, request_id=None)

    def complete(self, element: str, who: Actor | None = None, **variables: Any) -> TaskCompleted:
        """By whoever holds the task, unless `who` says otherwise; it must succeed."""
        task = self.task(element)
        holder = who or next(actor for actor in CAST if actor.username == rows.columns(self.conn, "user_task", task, "assignee")[0])
        outcome = complete_task(self.conn, task, actor=holder, variables=variables, request_id=None)
        assert isinstance(outcome, TaskCompleted), outcome
        return outcome

    # ---- what there is

    @property
    def open(self) -> list[str]:
        """Elements that wait: live tasks, jobs, external tasks, subscriptions."""
        found = self.conn.execute(
            "SELECT element_id FROM user_task WHERE instance_id = %(id)s AND status IN ('open', 'claimed')"
            " UNION ALL SELECT element_id FROM job WHERE instance_id = %(id)s"
            " UNION ALL SELECT element_id FROM external_task WHERE instance_id = %(id)s"
            " UNION ALL SELECT element_id FROM subscription WHERE instance_id = %(id)s ORDER BY 1",
            {"id": self.id},
        )
        return [row[0] for row in found.fetchall()]

    @property
    def tasks(self) -> list[str]:
        found = self.conn.execute(
            "SELECT element_id FROM user_task WHERE instance_id = %s AND status IN ('open', 'claimed') ORDER BY 1", (self.id,)
        )
        return [row[0] for row in found.fetchall()]

    def task(self, element: str) -> UUID:
        """The one live task at an element."""
        key: UUID = rows.one(
            self.conn,
            "SELECT id FROM user_task WHERE instance_id = %s AND element_id = %s AND status IN ('open', 'claimed')",
            self.id,
            element,
        )
        return key

    @property
    def places(self) -> list[tuple[str, str]]:
        """(element, status) of its tokens."""
        found = self.conn.execute("SELECT element_id, status FROM token WHERE instance_id = %s ORDER BY 1, 2", (self.id,))
        return found.fetchall()

    @property
    def status(self) -> str:
        return str(rows.columns(self.conn, "process_instance", self.id, "status")[0])

    @property
    def variables(self) -> dict[str, Any]:
        """Those of the process scope; of an ended case the final ones."""
        final = rows.columns(self.conn, "process_instance", self.id, "final_variables")[0]
        if final is not None:
            return {name: each["value"] for name, each in final.items()}
        found = self.conn.execute(
            "SELECT v.name, v.value FROM variable v JOIN scope s ON s.id = v.scope_id WHERE s.instance_id = %s AND s.parent_id IS NULL",
            (self.id,),
        )
        return dict(found.fetchall())

    def told(self, *kinds: str) -> list[str]:
        """What happened, in order: "kind element"; only the given kinds, or all."""
        found = self.conn.execute("SELECT kind, element_id FROM history WHERE instance_id = %s ORDER BY id", (self.id,))
        return [f"{kind} {element or ''}".strip() for kind, element in found.fetchall() if not kinds or kind in kinds]

    @property
    def leftovers(self) -> int:
        """Rows that an ended case must not have."""
        listed = "SELECT count(*) FROM inbox_entry e JOIN user_task t ON t.id = e.task_id WHERE t.instance_id = %s"
        tables = ("scope", "token", "job", "external_task", "subscription", "incident")
        counts = [rows.one(self.conn, f"SELECT count(*) FROM {table} WHERE instance_id = %s", self.id) for table in tables]
        return sum(counts) + int(rows.one(self.conn, listed, self.id))


def done(outcomes: Sequence[Any]) -> bool:
    """Whether all of them ended their item well, and there was one."""
    return bool(outcomes) and all(isinstance(outcome, ItemDone) for outcome in outcomes)
