"""Deployments: all files or none, a new version for what is new, and who starts instances from now on.

A definition is new when its file's fingerprint (canonical XML, see engine/bpmn/fingerprint.py) differs from that of the
newest version of its key; so going back to older content makes a new newest version, and formatting alone makes none.
The newest version takes over the start timers and start subscriptions. A start timer whose definition did not change
keeps its next occurrence: deploying again never shifts its grid, nor runs again what is over.

Decisions and forms are deployed with them (`deploy_decisions.py`, `deploy_forms.py`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg import errors

from engine.bpmn.calls import bound_in_vain, called_in_vain, calls_of, decided_in_vain, decisions_of
from engine.bpmn.definition import Problem, ProcessDefinition
from engine.bpmn.fingerprint import fingerprint
from engine.bpmn.reader import ReadResult, read_files
from engine.commands.deploy_decisions import (
    DECIDED,
    DecisionFile,
    DecisionVersion,
    deployed_decisions,
    files_of,
    parameters_of,
    versions_of,
)
from engine.commands.deploy_forms import FORMED, FormVersion, deployed_forms, form_versions, parameters_of_forms
from engine.commands.may import may
from engine.commands.outcome import Actor, Deployed, DeployedDefinition, Refusal, Rejected
from engine.commands.requests import WRITE_REQUEST, Request, encode, is_repeat, record, recorded, request_for
from engine.commands.start_events import (
    END_STARTS,
    WRITE_STARTS,
    Starts,
    UnusableStarts,
    has_none_start,
    read_starts,
    subscriptions_of,
    timers_of,
)
from engine.commands.transaction import Connection, command, transaction
from engine.db.definitions import ALONG, ALONG_COLUMNS, keep, keep_row, unread
from engine.db.locks import DEPLOYMENT, DEPLOYMENT_OF_DECISIONS, DEPLOYMENT_OF_FORMS, KEYS, TAKEN_OVER
from engine.db.session import cursor_of
from engine.dmn.reader import is_decision_file, read_decisions
from engine.forms.reader import FormFile, is_form_file, read_forms
from engine.forms.references import FormsThere, formed_in_vain, keys_and_files
from engine.ids import new_id
from engine.text import sort_key

NO_MODELS = ReadResult((), (), ())
MAX_KEPT = 100_000_000  # bytes: each process and each decision is kept with the whole file that it stands in


@command
def deploy(
    conn: Connection,
    files: Sequence[tuple[str, bytes]],
    *,
    actor: Actor,
    name: str = "",
    request_id: str | None = None,
) -> Deployed | Rejected:
    """Deploy BPMN, DMN and form files, (file name, content) each. Warns of what they name and nobody has, handlers included.

    Locks: the keys of processes, of decisions, of forms; the newest versions that are replaced, FOR UPDATE; the keys of start messages.
    Refuses: NOT_ALLOWED, INVALID with every problem of every file.
    """
    if not may(actor, "deploy", "definition"):
        return Rejected(Refusal.NOT_ALLOWED)
    tables = [file for file in files if is_decision_file(file[0])]
    forms = read_forms([file for file in files if is_form_file(file[0])])
    models = [file for file in files if not is_decision_file(file[0]) and not is_form_file(file[0])]
    read = read_files(models) if models or not files else NO_MODELS
    decisions = read_decisions(tables)
    problems = (*read.problems, *decisions.problems, *forms.problems, *_names_used_twice(files))
    if problems:
        return _refused(problems)
    request = request_for(actor, request_id, "deploy", "", [name, [[f, hashlib.sha256(data).hexdigest()] for f, data in files]])
    try:
        brought = _Brought(_models(read, dict(files)), files_of(decisions.graphs, dict(files)), forms.files)
        if too_large := _too_large_to_keep(brought):
            return _refused(too_large)
        outcome: Any = _deploy(conn, brought, actor, name, request)
    except UnusableStarts as unusable:
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


def _too_large_to_keep(brought: _Brought) -> tuple[Problem, ...]:
    """A file of thousands would be kept thousands of times."""
    sizes: Counter[str] = Counter()
    for model in brought.models:
        sizes[model.file] += len(model.xml)
    for table in brought.tables:
        sizes[table.name] += len(table.xml) * len(table.graph.decisions)
    for form in brought.forms:
        sizes[form.name] += len(form.content)
    if sizes.total() <= MAX_KEPT:
        return ()
    file, most = sizes.most_common(1)[0]
    what = f"each process, decision and form is kept with its file: {most:,} bytes for this one, {sizes.total():,} for all"
    return (Problem(None, None, what, f"at most {MAX_KEPT:,} bytes: fewer in one file, or several deployments", file),)


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


@dataclass(frozen=True, slots=True)
class _Brought:
    """What the files of a deployment hold."""

    models: Sequence[_Model]
    tables: Sequence[DecisionFile]
    forms: Sequence[FormFile]


def _models(read: ReadResult, files: Mapping[str, bytes]) -> list[_Model]:
    hashes = {file: fingerprint(files[file]) for file in {file for file, _ in read.definitions}}
    return [_Model(definition, file, files[file], hashes[file]) for file, definition in read.definitions]


# ---- under the locks

# With the models of the versions that this process has not read: which of their timers go on is asked of both.
_TAKEN_OVER = f"SELECT t.pending, {ALONG_COLUMNS} FROM ({TAKEN_OVER} AS pending OFFSET 0) t {ALONG}"


def _deploy(conn: Connection, brought: _Brought, actor: Actor, name: str, request: Request | None) -> Deployed | Rejected:
    models = brought.models
    with transaction(conn):
        row = _lock(conn, brought, actor)
        newest = {found["key"]: _Newest.of(found) for found in row[0]["newest"]}
        starts = read_starts([(model.definition, model.file) for model in models], datetime.fromisoformat(row[0]["now"]))
        versions = [_Version.of(model, begin, newest.get(model.definition.key)) for model, begin in zip(models, starts, strict=True)]
        decisions = versions_of(brought.tables, row[6] if brought.tables else ())
        forms = form_versions(brought.forms, row[7] if brought.forms else ())
        processes = frozenset(model.definition.key for model in models).union(row[1])
        decided = frozenset(version.decision.key for version in decisions).union(row[2])
        there = FormsThere(_and(row[3], (each.form.key for each in brought.forms)), _and(row[4], (each.name for each in brought.forms)))
        plan = _Plan(new_id(), actor, name, versions, decisions, forms, processes, decided, there, frozenset(row[5]))
        if plan.is_new:
            _write(conn, plan, request)
    if not plan.is_new:
        unchanged: Deployed | Rejected = record(conn, request, plan.outcome)
        return unchanged
    for version in plan.new:
        keep(version.id, version.model.definition)
    return plan.outcome


def _and(there: Iterable[str], brought: Iterable[str]) -> frozenset[str]:
    return frozenset(there).union(brought)


def _lock(conn: Connection, brought: _Brought, actor: Actor) -> tuple[Any, ...]:
    """What is there of the keys, under their locks."""
    models = brought.models
    formed = [keys_and_files(model.definition) for model in models]
    params = {
        "tenant_id": actor.tenant_id,
        "keys": [model.definition.key for model in models],
        "called": sorted({key for model in models for _, key in calls_of(model.definition)}),
        "decided": sorted({key for model in models for _, key in decisions_of(model.definition)}),
        "formed": sorted({key for keys, _ in formed for key in keys}),
        "filed": sorted({name for _, names in formed for name in names}),
        "decisions": sorted(key for table in brought.tables for key in table.graph.decisions),
        "forms": sorted(each.form.key for each in brought.forms),
    }
    statement = DEPLOYMENT_OF_FORMS if brought.forms else DEPLOYMENT_OF_DECISIONS if brought.tables else DEPLOYMENT
    row: tuple[Any, ...] | None = cursor_of(conn).execute(statement, params).fetchone()
    assert row is not None, "the function returns a document"
    return row


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest version of a key before this deployment that is not deleted. `highest`: the last number that was given."""

    id: UUID
    version: int
    content_hash: bytes
    status: str
    highest: int

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> _Newest:
        content = bytes.fromhex(found["content_hash"])
        return cls(UUID(found["id"]), found["live_version"], content, found["status"], highest=found["version"])


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
        return cls(model, starts, new_id(), before.highest + 1, before, unchanged=False)


@dataclass(frozen=True, slots=True)
class _Plan:
    deployment_id: UUID
    actor: Actor
    name: str
    versions: Sequence[_Version]
    decisions: Sequence[DecisionVersion]
    forms: Sequence[FormVersion]
    deployed: Container[str]  # the keys that are there, of what is called
    decided: Container[str]  # and of the decisions
    there: FormsThere
    known: Container[str]  # the handlers of the workers that are alive

    @property
    def new(self) -> list[_Version]:
        return [version for version in self.versions if not version.unchanged]

    @property
    def new_decisions(self) -> list[DecisionVersion]:
        return [version for version in self.decisions if not version.unchanged]

    @property
    def new_forms(self) -> list[FormVersion]:
        return [version for version in self.forms if not version.unchanged]

    @property
    def is_new(self) -> bool:
        return bool(self.new or self.new_decisions or self.new_forms)

    @property
    def outcome(self) -> Deployed:
        return Deployed(
            self.deployment_id if self.is_new else None,
            tuple(
                DeployedDefinition(
                    v.id, v.model.definition.key, v.number, v.model.definition.name, v.model.file, v.unchanged, self._warnings(v.model)
                )
                for v in self.versions
            ),
            deployed_decisions(self.decisions),
            deployed_forms(self.forms),
        )

    def _warnings(self, model: _Model) -> tuple[Problem, ...]:
        return (
            *model.definition.warnings,
            *called_in_vain(model.definition, self.deployed, model.file),
            *decided_in_vain(model.definition, self.decided, model.file),
            *formed_in_vain(model.definition, self.there, model.file),
            *bound_in_vain(model.definition, self.known, model.file),
        )


def _write(conn: Connection, plan: _Plan, request: Request | None) -> None:
    cursor = cursor_of(conn)
    replaced = [version.before.id for version in plan.new if version.before is not None]
    pending: list[Mapping[str, Any]] = []
    if replaced:
        found = cursor.execute(_TAKEN_OVER, {"definition_ids": replaced, "unread": unread(replaced)}).fetchall()
        pending = found[0][0]
        for row in found:
            if row[1] is not None:
                keep_row(*row[1:])
    timers = [
        timer
        for version in plan.new
        for timer in timers_of(
            conn, version.id, version.model.definition, version.starts, version.before.id if version.before else None, pending
        )
    ]
    subscriptions = [row for version in plan.new for row in subscriptions_of(version.id, version.starts)]
    messages = [row["id"] for row in subscriptions if row["kind"] == "start"]
    values = {**_values(plan), "replaced": replaced, "timers": _document(timers), "subscriptions": _document(subscriptions)}
    if request is not None:
        values.update(request.params(), outcome=encode(plan.outcome))
    if plan.new_decisions:
        values.update(parameters_of(plan.new_decisions))
    if plan.new_forms:
        values.update(parameters_of_forms(plan.new_forms))
    cursor.execute(_statement(plan, request is not None), values)
    if messages:  # a signal needs no look: it is not stored
        cursor.execute(KEYS, {"subscription_ids": messages, "job_ids": [new_id() for _ in messages]})


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
        "none_starts": [has_none_start(v.model.definition) for v in new],
        "tags": [v.model.definition.version_tag for v in new],
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
    documentation, has_none_start, version_tag, created_at)
  SELECT u.id, d.tenant_id, u.key, u.version, u.name, u.sort_key, d.id, u.file, u.hash, u.xml, u.documentation, u.none_start,
    u.tag, d.deployed_at
  FROM deployed d, unnest(%(ids)s::uuid[], %(keys)s::text[], %(versions)s::int[], %(names)s::text[], %(sort_keys)s::text[],
    %(files)s::text[], %(hashes)s::bytea[], %(xmls)s::bytea[], %(documentations)s::text[], %(none_starts)s::boolean[], %(tags)s::text[])
    AS u (id, key, version, name, sort_key, file, hash, xml, documentation, none_start, tag)
  RETURNING id, tenant_id, key, version, created_at
), begun AS (SELECT tenant_id, deployed_at AS at FROM deployed
), """
_EVENTS = """, event AS (
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
_TEXT += f"{END_STARTS.format(of='begun')}, {WRITE_STARTS.format(of='begun')}{_EVENTS}"
_PRESS = f", press AS ({WRITE_REQUEST.format(outcome='%(outcome)s::jsonb', source='deployed')})"


def _statement(plan: _Plan, pressed: bool) -> str:
    members = [DECIDED if plan.new_decisions else "", FORMED if plan.new_forms else "", _PRESS if pressed else ""]
    return f"{_TEXT}{''.join(members)} SELECT id FROM deployed"
