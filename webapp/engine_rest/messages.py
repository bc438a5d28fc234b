"""Messages and signals: correlated by what Camunda 7 correlates by, and never stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Never
from uuid import UUID

from flask import Response, jsonify

from engine.commands.may import may
from engine.commands.messages import publish_message
from engine.commands.outcome import MessageKnown, MessagePublished, Refusal, Rejected
from engine.commands.signals import broadcast_signal
from engine.core.values import Variable
from engine.queries.rest.executions import execution, local_variables
from engine.queries.rest.instances import RestInstance
from engine.queries.rest.receivers import MOST, Receiver, receivers
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.engine_rest.blueprint import blueprint, done, known, refuse, told
from webapp.engine_rest.instances import instance_of
from webapp.engine_rest.reading import Sent, body, uuid_of
from webapp.engine_rest.shapes import instance_shape
from webapp.engine_rest.values import write_variables

UNSUPPORTED = (
    "localCorrelationKeys",
    "processVariablesLocal",
    "processVariablesToTriggeredScope",
    "processDefinitionId",
    "startMessageOnly",
)
NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class _Message:
    """`business_key`, `instance_id`, `keys`: the criteria that were given; all must hold."""

    name: str
    business_key: str | None
    instance_id: UUID | None
    keys: dict[str, Any]
    variables: dict[str, Variable]
    all: bool

    @property
    def has_criteria(self) -> bool:
        return self.business_key is not None or self.instance_id is not None or bool(self.keys)


@blueprint.post("/message")
def correlate() -> Response:
    """204, or with `resultEnabled` who had it. 400 when nobody, or more than one without `all`, is meant."""
    sent = body()
    message = _read(sent)
    if not may(current_actor(), "publish", "message"):
        raise told(403, "not allowed: messages are published by operators")
    had = list(_to_all(message) if message.all else [_to_one(message)])
    if not sent.truth("resultEnabled"):
        return done()
    with_variables = bool(sent.truth("variablesInResultEnabled"))
    return jsonify([_result(*each, with_variables=with_variables) for each in had])


def _read(sent: Sent) -> _Message:
    for name in UNSUPPORTED:
        if sent.values.get(name):
            raise told(400, f"{name} is not supported")
    _of_own_tenant(sent)
    instance = sent.text("processInstanceId")
    return _Message(
        name=sent.need("messageName"),
        business_key=sent.text("businessKey"),
        instance_id=None if instance is None else uuid_of(instance) or NOBODY,
        keys={name: variable.value for name, variable in sent.variables("correlationKeys").items()},
        variables=sent.variables("processVariables"),
        all=bool(sent.truth("all")),
    )


def _to_one(message: _Message) -> tuple[MessagePublished, Receiver | None]:
    """To the only one that is meant: a waiting instance, else a start event."""
    if message.has_criteria:
        return _publish(message), None
    waiting = _receivers(message)
    if len(waiting) > 1:
        _mismatch(message, f"{len(waiting)} executions match the correlation: expected one; give a businessKey or a processInstanceId")
    return (_publish(message, waiting[0]), waiting[0]) if waiting else (_publish(message), None)


def _to_all(message: _Message) -> Iterator[tuple[MessagePublished, Receiver | None]]:
    """To each that waits, in a transaction of its own; to a start event if nobody does. Nobody at all is no error."""
    waiting = _receivers(message)
    if len(waiting) > MOST:
        raise told(400, f"all: expected at most {MOST} executions that match message {message.name!r}, found more")
    twice = [pair for pair, times in Counter((each.instance_id, each.correlation_key) for each in waiting).items() if times > 1]
    if twice:
        raise told(
            400, f"all: process instance {twice[0][0]} waits more than once for message {message.name!r}, which cannot be told apart"
        )
    for each in waiting:
        outcome = _sent(message, each)
        if not isinstance(outcome, Rejected):
            yield _did(outcome), each
        elif outcome.refusal is not Refusal.NO_SUBSCRIPTION:  # gone meanwhile: somebody else's message
            refuse(outcome, what=f"correlate message {message.name!r}")
    if not waiting and message.instance_id is None and not message.keys:
        outcome = _sent(message)
        if not isinstance(outcome, Rejected):
            yield _did(outcome), None
        elif outcome.refusal is not Refusal.NO_SUBSCRIPTION:
            refuse(outcome, what=f"correlate message {message.name!r}")


def _receivers(message: _Message) -> list[Receiver]:
    with reading(reader()) as conn:
        return receivers(
            conn,
            message.name,
            tenant_id=current_actor().tenant_id,
            business_key=message.business_key,
            instance_id=message.instance_id,
            variables=message.keys,
        )


def _publish(message: _Message, to: Receiver | None = None) -> MessagePublished:
    outcome = _sent(message, to)
    if isinstance(outcome, Rejected):
        if outcome.refusal in (Refusal.NO_SUBSCRIPTION, Refusal.AMBIGUOUS):
            _mismatch(message, outcome.detail or "No process definition or execution matches the parameters")
        refuse(outcome, what=f"correlate message {message.name!r}")
    return _did(outcome)


def _sent(message: _Message, to: Receiver | None = None) -> MessagePublished | MessageKnown | Rejected:
    return publish_message(
        command_connection(),
        message.name,
        actor=current_actor(),
        correlation_key=to.correlation_key if to is not None else "",
        variables=message.variables,
        business_key=message.business_key if to is None else None,
        instance_id=message.instance_id if to is None else to.instance_id,
        correlation_variables=message.keys if to is None else None,
    )


def _did(outcome: MessagePublished | MessageKnown) -> MessagePublished:
    return outcome.first if isinstance(outcome, MessageKnown) else outcome


def _mismatch(message: _Message, why: str) -> Never:
    raise told(400, f"Cannot correlate message '{message.name}': {why}")


def _result(did: MessagePublished, waited: Receiver | None, *, with_variables: bool) -> dict[str, Any]:
    found = instance_of(did.instance_id) if did.instance_id is not None else None
    shape: dict[str, Any] = {"resultType": "ProcessDefinition" if did.started else "Execution", "execution": None, "processInstance": None}
    if did.started:
        shape["processInstance"] = instance_shape(found) if found is not None else None
    else:
        shape["execution"] = {
            "id": waited.token_id if waited is not None else did.instance_id,
            "processInstanceId": did.instance_id,
            "ended": found is not None and found.ended_at is not None,
            "tenantId": (found.tenant_id or None) if found is not None else None,
        }
    shape["variables"] = write_variables(_variables(found)) if with_variables and found is not None else None
    return shape


def _variables(found: RestInstance) -> dict[str, Variable]:
    """Of the process scope, now or in the end."""
    if found.final_variables is not None:
        return {name: Variable(kept["type"], kept["value"]) for name, kept in found.final_variables.items()}
    process = execution(reader(), current_actor(), found.id)
    return local_variables(reader(), process) if process is not None else {}


@blueprint.post("/signal")
def signal() -> Response:
    sent = body()
    if sent.values.get("executionId"):
        raise told(400, "executionId is not supported: a signal is for everybody who waits for it")
    _of_own_tenant(sent)
    name = sent.need("name")
    known(
        broadcast_signal(command_connection(), name, actor=current_actor(), variables=sent.variables("variables")),
        what=f"throw signal {name!r}",
    )
    return done()


def _of_own_tenant(sent: Sent) -> None:
    """The tenant without a name is no tenant there."""
    mine = current_actor().tenant_id
    tenant = sent.text("tenantId")
    if (tenant and tenant != mine) or (sent.truth("withoutTenantId") and mine):
        raise told(400, "tenantId: expected the tenant of whoever asks, or none")
