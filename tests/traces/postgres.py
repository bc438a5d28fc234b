"""Scripts of `baton simulate` on PostgreSQL: the public commands, a clock that stands, and one worker that does one thing after the other.

It follows the simulator's one rule of order: what is due is done by due time, then by age. Whatever else is equal, is equal
because the engine does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from engine.bpmn.definition import ProcessDefinition, ServiceTaskConfig, none_start
from engine.bpmn.reader import read_files
from engine.bpmn.times import DurationTimer, parse_moment, parse_timer
from engine.commands.cancel import cancel_instance
from engine.commands.complete_task import complete_task
from engine.commands.deliver_message import deliver_message
from engine.commands.deploy import deploy
from engine.commands.external_tasks import (
    LeasedTask,
    acquire_external_tasks,
    complete_external_task,
    fail_external_task,
    throw_external_error,
)
from engine.commands.jobs import complete_job, continue_loop, fail_job, fire_timer, throw_job_error
from engine.commands.messages import publish_message
from engine.commands.outcome import Actor, Lease, Rejected, SignalSpread
from engine.commands.retry import retry_item
from engine.commands.signals import broadcast_signal, receive_signal, spread_signal
from engine.commands.start import start_instance
from engine.commands.start_by_timer import start_by_timer
from engine.commands.tasks import claim
from engine.commands.thrown_messages import publish_thrown
from engine.db.acquire import Acquired, acquire_jobs
from engine.db.load import Work, load_batch
from engine.dmn.reader import is_decision_file
from engine.simulation.play import act
from engine.simulation.script import Script
from engine.simulation.trace import NOT_TOLD, Happened, told
from engine.simulation.works import BpmnError, Handler
from tests.traces import clock

AUTHOR = Actor("author", role="administrator", display_name="Au Thor")
OWNER = "the-one-worker"
LONG = 1e8  # seconds: nobody takes anything back
MOST = 2_000
ENDS: dict[tuple[str, str], Callable[..., Any]] = {
    ("timer", ""): fire_timer,
    ("continue", ""): continue_loop,
    ("start_timer", ""): start_by_timer,
    ("message", ""): deliver_message,
    ("throw", "signal"): spread_signal,
    ("throw", "message"): publish_thrown,
    ("signal", ""): receive_signal,
}


class OnPostgres:
    """The actions of a script (engine.simulation.play.Actions) as commands on one database."""

    def __init__(self, conn: psycopg.Connection[Any], files: Sequence[tuple[str, bytes]], at: datetime) -> None:
        self.conn = conn
        clock.move_to(conn, at)
        _done(deploy(conn, files, actor=AUTHOR))
        self.definitions: dict[str, ProcessDefinition] = {each.key: each for _, each in read_files(_models(files)).definitions}
        configs = [node.config for each in self.definitions.values() for node in each.nodes.values()]
        self.topics = sorted({each.topic for each in configs if isinstance(each, ServiceTaskConfig)})
        self.handlers: dict[str, Handler] = {}
        self.jobs: dict[UUID, tuple[Acquired, Work]] = {}
        self.externals: dict[UUID, LeasedTask] = {}
        self.chosen: UUID | None = None

    def play(self, script: Script) -> None:
        for step in script.steps:
            if step.verb != "expect":
                act(self, step)

    # ---- actions

    def handler(self, name: str, function: Handler) -> None:
        self.handlers[name] = function
        self.settle()

    def start(self, process: str | None, business_key: str | None, variables: Mapping[str, Any]) -> None:
        key = process or next(key for key, each in self.definitions.items() if none_start(each) is not None and not each.called_only)
        outcome = _done(start_instance(self.conn, key, actor=AUTHOR, variables=variables, business_key=business_key))
        self.chosen = outcome.instance_id
        self.settle()

    def complete(self, task: str, number: int, variables: Mapping[str, Any]) -> None:
        task_id = self._find("user_task", task, number, "name", "status IN ('open', 'claimed')")
        (assignee,) = self._row("SELECT assignee FROM user_task WHERE id = %s", task_id)
        if assignee is None:
            _done(claim(self.conn, task_id, actor=AUTHOR, request_id=None))
        actor = Actor(assignee) if assignee else AUTHOR
        _done(complete_task(self.conn, task_id, actor=actor, variables=variables, request_id=None))
        self.settle()

    def returns(self, job: str, number: int, variables: Mapping[str, Any]) -> None:
        self._end(self._work(job, number), lambda _: variables)
        self.settle()

    def throws(self, job: str, number: int, code: str, message: str, variables: Mapping[str, Any]) -> None:
        def throw(_: Mapping[str, Any]) -> Mapping[str, Any]:
            raise BpmnError(code, message, **variables)

        self._end(self._work(job, number), throw)
        self.settle()

    def fails(self, job: str, number: int, error: str) -> None:
        item = self._work(job, number)
        if item in self.externals:
            lease = self.externals.pop(item).lease_number
            _done(fail_external_task(self.conn, item, actor=AUTHOR, lease_number=lease, error=error, final=True))
        else:
            _done(fail_job(self.conn, self._lease(item), error=error, final=True))
            del self.jobs[item]
        self.settle()

    def message(self, name: str, key: str | None, seconds: float, variables: Mapping[str, Any]) -> None:
        mine = (
            self._row("SELECT business_key FROM process_instance WHERE id = %s", self._case())[0] if key is None and self._cases() else None
        )
        given = {"correlation_key": (mine or "") if key is None else key, "variables": variables, "time_to_live_seconds": seconds or None}
        _done(publish_message(self.conn, name, actor=AUTHOR, **given))
        self.settle()

    def signal(self, name: str, variables: Mapping[str, Any]) -> None:
        _done(broadcast_signal(self.conn, name, actor=AUTHOR, variables=variables))
        self.settle()

    def advance(self, by: str) -> None:
        now = clock.now(self.conn)
        timer = parse_timer("duration", by) if by.startswith("P") else None
        target = timer.after(now) if isinstance(timer, DurationTimer) else parse_moment(by)
        due = "SELECT min(due_at) FROM job WHERE status = 'available' AND due_at <= %s"
        while (following := self._row(due, target)[0]) is not None:
            clock.move_to(self.conn, max(following, clock.now(self.conn)))
            self.settle()
        clock.move_to(self.conn, target)

    def retry(self, element: str, number: int) -> None:
        found = self.conn.execute(
            "SELECT job_id, external_task_id, token_id FROM incident WHERE element_id = %s"
            " ORDER BY coalesce(job_id, external_task_id, token_id)",
            (element,),
        ).fetchall()[number - 1]
        kind, item = next((kind, key) for kind, key in zip(("job", "external_task", "token"), found, strict=True) if key is not None)
        _done(retry_item(self.conn, kind, item, actor=AUTHOR))
        self.settle()

    def cancel(self, reason: str) -> None:
        _done(cancel_instance(self.conn, self._case(), actor=AUTHOR, reason=reason, request_id=None))
        self.settle()

    def case(self, number: int) -> None:
        self.chosen = self._cases()[number - 1]

    # ---- the worker

    def settle(self) -> None:
        """Do what is due and can be done, by due time and age, until nothing is left."""
        for _ in range(MOST):
            self._acquire()
            ready = [item for item in self._alive() if self._can(item)]
            if not ready:
                return
            self._do(ready[0])
        raise AssertionError(f"expected everything to wait after {MOST} steps")

    def _acquire(self) -> None:
        kinds = [*ENDS, *(("service", topic) for topic in self.topics)]
        given = {"owner": OWNER, "capabilities": kinds, "limit": 1000, "lease_seconds": LONG, "workers": 1}
        while items := acquire_jobs(self.conn, **given):
            works = load_batch(self.conn, [item.item_id for item in items])
            self.jobs |= {item.item_id: (item, works[item.item_id]) for item in items}
        if self.topics:
            leased = acquire_external_tasks(self.conn, actor=AUTHOR, worker_id=OWNER, topics=self.topics, limit=100, lease_seconds=86_400)
            assert isinstance(leased, list), leased
            self.externals |= {task.id: task for task in leased}

    def _alive(self) -> list[UUID]:
        """What is leased and still there, by due time and age."""
        found = self.conn.execute(
            "SELECT id, due_at FROM job WHERE id = ANY (%s)"
            " UNION ALL SELECT id, due_at FROM external_task WHERE id = ANY (%s) ORDER BY 2, 1",
            (list(self.jobs), list(self.externals)),
        ).fetchall()
        return [key for key, _ in found]

    def _can(self, item: UUID) -> bool:
        if item in self.externals:
            return self.externals[item].topic in self.handlers
        job = self.jobs[item][0]
        return (job.job_kind, job.topic) in ENDS or job.topic in self.handlers

    def _do(self, item: UUID) -> None:
        job = self.jobs[item][0] if item in self.jobs else None
        if job is not None and (end := ENDS.get((job.job_kind, job.topic))) is not None:
            while isinstance(outcome := _done(end(self.conn, self._lease(item))), SignalSpread):
                assert outcome
            del self.jobs[item]
        else:
            self._end(item, self.handlers[job.topic if job else self.externals[item].topic])

    def _end(self, item: UUID, handler: Handler) -> None:
        """The handler of a job, or the worker of an external task, runs and reports."""
        if item in self.externals:
            task = self.externals.pop(item)
            given = {"actor": AUTHOR, "lease_number": task.lease_number}
            try:
                _done(complete_external_task(self.conn, item, variables=handler(task.variables) or {}, **given))
            except BpmnError as error:
                _done(throw_external_error(self.conn, item, code=error.code, message=error.message, variables=error.variables, **given))
            return
        _, work = self.jobs[item]
        lease = self._lease(item)
        del self.jobs[item]
        try:
            result = handler({**work.variables, **work.inputs})
        except BpmnError as error:
            _done(throw_job_error(self.conn, lease, code=error.code, message=error.message, variables=error.variables))
            return
        _done(complete_job(self.conn, lease, variables=result or {}))

    def _lease(self, item: UUID) -> Lease:
        job, work = self.jobs[item]
        return Lease("job", item, job.number, OWNER, job.expires_at, {"lock_first": work.lock_first})

    # ---- what there is

    def _work(self, name: str, number: int) -> UUID:
        """The job or external task at this element, or of this topic."""
        jobs = self._named("job", name, "topic", "kind = 'service' AND status = 'leased'")
        return sorted(jobs + self._named("external_task", name, "topic", "status = 'leased'"))[number - 1]

    def _find(self, table: str, name: str, number: int, column: str, where: str) -> UUID:
        return self._named(table, name, column, where)[number - 1]

    def _named(self, table: str, name: str, column: str, where: str) -> list[UUID]:
        found = self.conn.execute(
            f"SELECT t.id, t.element_id, t.{column}, d.key FROM {table} t JOIN process_definition d ON d.id = t.definition_id"  # type: ignore[arg-type]
            f" WHERE {where.replace('status', 't.status').replace('kind =', 't.kind =')} ORDER BY t.id"
        ).fetchall()
        return [key for key, element, own, process in found if name in (element, own, self.definitions[process].nodes[element].name)]

    def _cases(self) -> list[UUID]:
        return [row[0] for row in self.conn.execute("SELECT id FROM process_instance WHERE parent_id IS NULL ORDER BY id").fetchall()]

    def _case(self) -> UUID:
        return self.chosen or self._cases()[-1]

    def _row(self, statement: str, *parameters: Any) -> Any:
        return self.conn.execute(statement.encode(), parameters).fetchone()

    def trace(self) -> list[Happened]:
        """The history, as the simulator tells it."""
        rows = self.conn.execute(
            "SELECT h.at, h.instance_id, d.key, h.kind, h.element_id, h.data FROM history h JOIN process_instance i ON i.id = h.instance_id"
            " JOIN process_definition d ON d.id = i.definition_id WHERE h.kind <> ALL (%s) ORDER BY h.id",
            (list(NOT_TOLD),),
        ).fetchall()
        numbers: dict[UUID, int] = {}
        return [
            Happened(at, numbers.setdefault(instance, len(numbers) + 1), process, kind, element, "", told(kind, data))
            for at, instance, process, kind, element, data in rows
        ]

    def endings(self) -> list[tuple[str, str, str | None, dict[str, Any]]]:
        """(process, status, business key, variables of the process) of each case, as plain JSON."""
        rows = self.conn.execute(
            "SELECT d.key, i.status, i.business_key, i.final_variables, (SELECT coalesce(jsonb_object_agg(v.name, v.value), '{}')"
            " FROM scope s JOIN variable v ON v.scope_id = s.id WHERE s.instance_id = i.id AND s.parent_id IS NULL AND s.token_id IS NULL)"
            " FROM process_instance i JOIN process_definition d ON d.id = i.definition_id WHERE i.parent_id IS NULL ORDER BY i.id"
        ).fetchall()
        return [
            (key, status, business, live if final is None else {name: each["value"] for name, each in final.items()})
            for key, status, business, final, live in rows
        ]


def _models(files: Sequence[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    return [file for file in files if not is_decision_file(file[0])]


def _done(outcome: Any) -> Any:
    assert not isinstance(outcome, Rejected), outcome
    return outcome
