"""Deployments: all files or none, a new version for what is new, and who starts instances from now on.

A definition is new when its file's fingerprint (canonical XML, see engine/bpmn/fingerprint.py) differs from that of the
newest version of its key; so going back to older content makes a new newest version, and formatting alone makes none.
The newest version takes over the start timers and start subscriptions. A start timer whose definition did not change
keeps its next occurrence: deploying again never shifts its grid, nor runs again what is over.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from psycopg import errors

from engine.bpmn.definition import MessageConfig, Problem, ProcessDefinition, SignalConfig, StartConfig, TimerConfig, occurs
from engine.bpmn.fingerprint import fingerprint
from engine.bpmn.reader import ReadResult, read_files
from engine.commands.may import may
from engine.commands.outcome import Actor, Deployed, DeployedDefinition, Refusal, Rejected
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, record, recorded, request_for
from engine.commands.start_by_timer import first_occurrence
from engine.commands.transaction import Connection, command, transaction
from engine.core.catching import MAX_NAME
from engine.core.reading import as_text
from engine.core.run import CannotGoOn
from engine.core.timers import Due
from engine.db.definitions import DefinitionRefused, compiled, keep
from engine.db.locks import DEPLOYMENT, KEYS, TAKEN_OVER
from engine.db.session import cursor_of
from engine.expressions import ExpressionError
from engine.ids import new_id
from engine.text import sort_key


@command
def deploy(
    conn: Connection,
    files: Sequence[tuple[str, bytes]],
    *,
    actor: Actor,
    name: str = "",
    request_id: str | None = None,
    handlers: Collection[str] | None = None,
) -> Deployed | Rejected:
    """Deploy BPMN files, (file name, content) each; `handlers`: names that workers know, others are warned about.

    Locks: the process keys; the newest versions that are replaced, FOR UPDATE; the keys of start messages.
    Refuses: NOT_ALLOWED, INVALID with every problem of every file.
    """
    if not may(actor, "deploy", "definition"):
        return Rejected(Refusal.NOT_ALLOWED)
    read = read_files(files, handlers=handlers)
    problems = (*read.problems, *_names_used_twice(files))
    if problems:
        return _refused(problems)
    request = request_for(actor, request_id, "deploy", "", [name, [[f, hashlib.sha256(data).hexdigest()] for f, data in files]])
    try:
        outcome: Any = _deploy(conn, _models(read, dict(files)), actor, name, request)
    except _Unusable as unusable:
        return _refused(unusable.problems)
    except errors.UniqueViolation as error:
        if not is_repeat(error):
            raise
        outcome = recorded(conn, request)
    result: Deployed | Rejected = outcome
    return result


def _names_used_twice(files: Sequence[tuple[str, bytes]]) -> list[Problem]:
    twice = [name for name, count in Counter(name for name, _ in files).items() if count > 1]
    return [Problem(None, None, f"two files have the name {name!r}", "a name of its own for each file", name) for name in twice]


def _refused(problems: tuple[Problem, ...]) -> Rejected:
    return Rejected(Refusal.INVALID, f"{len(problems)} problem{'' if len(problems) == 1 else 's'}, nothing was deployed", problems=problems)


# ---- what the files say


@dataclass(frozen=True, slots=True)
class _Model:
    """One process of one file, with the events that start it, by element."""

    definition: ProcessDefinition
    file: str
    xml: bytes
    content_hash: bytes

    @property
    def starts(self) -> dict[str, StartConfig]:
        """By event, or by part of a multiple one."""
        found = self.definition
        return {part: found.nodes[part].config for key in found.starts.get(None, ()) for part in found.parts.get(key, (key,))}

    @property
    def timers(self) -> dict[str, TimerConfig]:
        return {key: config.timer for key, config in self.starts.items() if config.timer is not None}

    @property
    def messages(self) -> dict[str, MessageConfig]:
        return {key: config.message for key, config in self.starts.items() if config.message is not None}

    @property
    def signals(self) -> dict[str, SignalConfig]:
        found = {key: getattr(config, "signal", None) for key, config in self.starts.items()}
        return {key: signal for key, signal in found.items() if signal is not None}

    @property
    def has_none_start(self) -> bool:
        return any(not occurs(config) for config in self.starts.values())


def _models(read: ReadResult, files: Mapping[str, bytes]) -> list[_Model]:
    hashes = {file: fingerprint(data) for file, data in files.items()}
    return [_Model(definition, file, files[file], hashes[file]) for file, definition in read.definitions]


class _Unusable(Exception):
    """Start events that read well and cannot be judged: an expression that fails, a timer without a time."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(f"{len(problems)} start events cannot be judged")
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Starts:
    """What starts a model by itself. `timers`: when each is due first, None never; the names of messages and signals, by element."""

    timers: Mapping[str, Due | None]
    messages: Mapping[str, str]
    signals: Mapping[str, str]


def _starts(models: Sequence[_Model], now: datetime) -> list[Starts]:
    """One for each model. Raises _Unusable with every problem."""
    problems: list[Problem] = []

    def judged(model: _Model, element_id: str, judge: Callable[[], Any]) -> Any:
        try:
            return judge()
        except (CannotGoOn, ExpressionError) as error:
            node = model.definition.nodes[element_id]
            why = "a start event that can be judged when it is deployed"
            problems.append(Problem(element_id, node.line, str(error), why, model.file))

    found = [
        Starts(
            {key: judged(model, key, partial(first_occurrence, timer, now)) for key, timer in model.timers.items()},
            {key: judged(model, key, partial(_name, message)) for key, message in model.messages.items()},
            {key: judged(model, key, partial(_name, signal)) for key, signal in model.signals.items()},
        )
        for model in models
    ]
    if problems:
        raise _Unusable(problems)
    return found


def _name(event: MessageConfig | SignalConfig) -> str:
    name = as_text(event.name.evaluate({}))
    if not name or len(name) > MAX_NAME:
        raise CannotGoOn("expression", f"expected a name of 1 to {MAX_NAME} characters, found {len(name):,} from {event.name.text}")
    return name


# ---- under the locks


def _deploy(conn: Connection, models: Sequence[_Model], actor: Actor, name: str, request: Request | None) -> Deployed | Rejected:
    with transaction(conn):
        row = cursor_of(conn).execute(DEPLOYMENT, {"tenant_id": actor.tenant_id, "keys": [m.definition.key for m in models]}).fetchone()
        assert row is not None, "the function returns a document"
        newest = {found["key"]: _Newest.of(found) for found in row[0]["newest"]}
        starts = _starts(models, datetime.fromisoformat(row[0]["now"]))
        versions = [_Version.of(model, begin, newest.get(model.definition.key)) for model, begin in zip(models, starts, strict=True)]
        plan = _Plan(new_id(), actor, name, versions)
        if plan.new:
            _write(conn, plan, request)
    if not plan.new:
        unchanged: Deployed | Rejected = record(conn, request, plan.outcome)
        return unchanged
    for version in plan.new:
        keep(version.id, version.model.definition)
    return plan.outcome


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest version of a key before this deployment."""

    id: UUID
    version: int
    content_hash: bytes
    status: str

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> _Newest:
        return cls(UUID(found["id"]), found["version"], bytes.fromhex(found["content_hash"]), found["status"])


@dataclass(frozen=True, slots=True)
class _Version:
    """What one process becomes: a new version, or the newest one that is the same."""

    model: _Model
    starts: Starts
    id: UUID
    number: int
    before: _Newest | None
    unchanged: bool

    @classmethod
    def of(cls, model: _Model, starts: Starts, before: _Newest | None) -> _Version:
        if before is None:
            return cls(model, starts, new_id(), 1, None, unchanged=False)
        if before.content_hash == model.content_hash and before.status != "deleting":
            return cls(model, starts, before.id, before.version, before, unchanged=True)
        return cls(model, starts, new_id(), before.version + 1, before, unchanged=False)


@dataclass(frozen=True, slots=True)
class _Plan:
    deployment_id: UUID
    actor: Actor
    name: str
    versions: Sequence[_Version]

    @property
    def new(self) -> list[_Version]:
        return [version for version in self.versions if not version.unchanged]

    @property
    def outcome(self) -> Deployed:
        return Deployed(
            self.deployment_id if self.new else None,
            tuple(
                DeployedDefinition(
                    v.id, v.model.definition.key, v.number, v.model.definition.name, v.model.file, v.unchanged, v.model.definition.warnings
                )
                for v in self.versions
            ),
        )


def _write(conn: Connection, plan: _Plan, request: Request | None) -> None:
    cursor = cursor_of(conn)
    replaced = [version.before.id for version in plan.new if version.before is not None]
    pending: list[Mapping[str, Any]] = []
    if replaced:
        row = cursor.execute(TAKEN_OVER, {"definition_ids": replaced}).fetchone()
        assert row is not None, "the function returns a document"
        pending = row[0]
    timers = [timer for version in plan.new for timer in _timers(conn, version, pending)]
    subscriptions = [row for version in plan.new for row in subscriptions_of(version.id, version.starts)]
    messages = [row["id"] for row in subscriptions if row["kind"] == "start"]
    values = {**_values(plan), "replaced": replaced, "timers": _document(timers), "subscriptions": _document(subscriptions)}
    if request is not None:
        values.update(request.params(), outcome=encode(plan.outcome))
    cursor.execute(_DEPLOY[request is not None], values)
    if messages:  # a signal needs no look: it is not stored
        cursor.execute(KEYS, {"subscription_ids": messages, "job_ids": [new_id() for _ in messages]})


def subscriptions_of(definition_id: UUID, starts: Starts) -> list[dict[str, Any]]:
    """The subscriptions of a version's start events, as rows."""
    named = [("start", starts.messages), ("signal_start", starts.signals)]
    return [
        {"id": new_id(), "definition_id": definition_id, "element_id": element_id, "message_name": name, "kind": kind}
        for kind, names in named
        for element_id, name in names.items()
    ]


def _timers(conn: Connection, version: _Version, pending: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The `start_timer` jobs of a new version: what did not change goes on where the replaced version had come to."""
    rows = []
    for element_id, timer in version.model.timers.items():
        first = version.starts.timers[element_id]
        if version.before is not None and _same_timer(conn, version.before.id, element_id, timer):
            mine = [p for p in pending if p["definition_id"] == str(version.before.id) and p["element_id"] == element_id]
            rows += [_timer(version, element_id, p["due_at"], None, p["payload"]) for p in mine]
        elif first is not None:
            rows.append(_timer(version, element_id, first.at, first.in_seconds, first.payload))
    return rows


def _same_timer(conn: Connection, definition_id: UUID, element_id: str, timer: TimerConfig) -> bool:
    try:
        node = compiled(conn, definition_id).nodes.get(element_id)
    except DefinitionRefused:
        return False  # stored under older rules, which have left no start timer that we could go on with
    before: TimerConfig | None = getattr(node.config, "timer", None) if node is not None else None
    return before is not None and (before.type, before.expression.text, before.zone) == (timer.type, timer.expression.text, timer.zone)


def _timer(version: _Version, element_id: str, due_at: Any, in_seconds: float | None, payload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": new_id(),
        "definition_id": version.id,
        "element_id": element_id,
        "due_at": due_at,
        "in_seconds": in_seconds,
        "payload": dict(payload),
    }


def _values(plan: _Plan) -> dict[str, Any]:
    new = plan.new
    return {
        "deployment_id": plan.deployment_id,
        "tenant_id": plan.actor.tenant_id,
        "name": plan.name,
        "actor": plan.actor.username,
        "ids": [v.id for v in new],
        "keys": [v.model.definition.key for v in new],
        "versions": [v.number for v in new],
        "names": [v.model.definition.name for v in new],
        "sort_keys": [sort_key(v.model.definition.name or v.model.definition.key) for v in new],
        "files": [v.model.file for v in new],
        "hashes": [v.model.content_hash for v in new],
        "xmls": [v.model.xml for v in new],
        "documentations": [v.model.definition.documentation for v in new],
        "none_starts": [v.model.has_none_start for v in new],
    }


def _document(rows: Any) -> str:
    return orjson.dumps(rows).decode()


# ---- the statement

_TEXT = """
WITH deployed AS (
  INSERT INTO deployment (id, tenant_id, name, deployed_by, deployed_at)
  VALUES (%(deployment_id)s, %(tenant_id)s, %(name)s, %(actor)s, baton_clock()) RETURNING *
), defined AS (
  INSERT INTO process_definition (id, tenant_id, key, version, name, sort_key, deployment_id, resource_name, content_hash, xml,
    documentation, has_none_start, created_at)
  SELECT u.id, d.tenant_id, u.key, u.version, u.name, u.sort_key, d.id, u.file, u.hash, u.xml, u.documentation, u.none_start,
    d.deployed_at
  FROM deployed d, unnest(%(ids)s::uuid[], %(keys)s::text[], %(versions)s::int[], %(names)s::text[], %(sort_keys)s::text[],
    %(files)s::text[], %(hashes)s::bytea[], %(xmls)s::bytea[], %(documentations)s::text[], %(none_starts)s::boolean[])
    AS u (id, key, version, name, sort_key, file, hash, xml, documentation, none_start)
  RETURNING id, tenant_id, key, version, created_at
), unsubscribed AS (
  DELETE FROM subscription s USING deployed WHERE s.definition_id = ANY (%(replaced)s) AND s.kind IN ('start', 'signal_start')
), unscheduled AS (
  DELETE FROM job j USING deployed WHERE j.definition_id = ANY (%(replaced)s) AND j.instance_id IS NULL
    AND j.kind IN ('start_timer', 'message')
), subscribed AS (
  INSERT INTO subscription (id, tenant_id, kind, message_name, definition_id, element_id, created_at)
  SELECT u.id, d.tenant_id, u.kind, u.message_name, u.definition_id, u.element_id, d.deployed_at
  FROM deployed d, jsonb_populate_recordset(NULL::subscription, %(subscriptions)s::jsonb) u
), scheduled AS (
  INSERT INTO job (id, tenant_id, kind, definition_id, element_id, due_at, available_at, payload, created_at)
  SELECT u.id, d.tenant_id, 'start_timer', u.definition_id, u.element_id, w.due, greatest(w.due, d.deployed_at), u.payload, d.deployed_at
  FROM deployed d, jsonb_to_recordset(%(timers)s::jsonb)
    AS u (id uuid, definition_id uuid, element_id text, due_at timestamptz, in_seconds float8, payload jsonb),
    LATERAL (SELECT coalesce(u.due_at, d.deployed_at + make_interval(secs => u.in_seconds)) AS due) w
), event AS (
  INSERT INTO history (at, tenant_id, definition_id, kind, actor, data)
  SELECT created_at, tenant_id, id, 'definition_deployed', %(actor)s,
    jsonb_build_object('key', key, 'version', version, 'deployment_id', %(deployment_id)s::uuid)
  FROM defined
), noted AS (
  INSERT INTO audit (at, tenant_id, actor, action, object_kind, object_id, detail)
  SELECT d.deployed_at, d.tenant_id, d.deployed_by, 'deploy', 'deployment', d.id::text,
    jsonb_build_object('name', d.name, 'keys', %(keys)s::text[], 'versions', %(versions)s::int[])
  FROM deployed d
)"""
_DEPLOY = (
    _TEXT + " SELECT id FROM deployed",
    _TEXT + f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='deployed')}) SELECT id FROM deployed",
)
