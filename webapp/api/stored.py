"""Messages that nobody had yet, and who waits for which. For operators."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict
from uuid import UUID

from flask import Response, abort, jsonify

from engine.queries.crew import ExpiredMessage, OpenSubscription, StoredMessage
from engine.queries.crew import expired_messages as expired
from engine.queries.crew import open_subscriptions as subscribed
from engine.queries.crew import stored_message as one_stored
from engine.queries.crew import stored_messages as stored
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, text
from webapp.api.describing import Sent, operation, paged
from webapp.api.instances import plain
from webapp.api.schemas import Listed, Moment, words
from webapp.api.shapes import listed, shaped
from webapp.auth.identity import current_actor
from webapp.db import reader

SEARCHED = {"q": Field(text(), "", about="Part of the name or of the correlation key.")}

KINDS = {"catch": "message", "start": "message_start", "signal": "signal", "signal_start": "signal_start"}


class StoredMessageShape(TypedDict):
    """`expires_at`: until then it is used by whoever comes to wait for it."""

    id: UUID
    name: str
    correlation_key: str
    variables: dict[str, Any]
    published_by: str
    published_at: Moment
    expires_at: Moment


class ExpiredMessageShape(TypedDict):
    id: UUID
    name: str
    correlation_key: str
    published_by: str
    published_at: Moment
    expires_at: Moment


class SubscriptionShape(TypedDict):
    """`message` and `signal`: of an instance that waits; `message_start` and `signal_start`: of a version that starts by it."""

    id: UUID
    kind: Annotated[str, words(*KINDS.values())]
    message_name: str
    correlation_key: str
    element_id: str
    process_definition_key: str
    version: int
    process_instance_id: UUID | None
    business_key: str | None
    created_at: Moment


@blueprint.get("/messages")
@operation(scope="read", needs=("see", "message"), query={**SEARCHED, **paged()}, answers=Listed[StoredMessageShape])
def list_messages(asked: Sent) -> Response:
    """The messages that are stored because nobody waited for them, newest first."""
    with reading(reader()) as conn:
        return listed(stored(conn, tenant_id=current_actor().tenant_id, **asked), stored_message_shape)


@blueprint.get("/messages/<uuid:message_id>")
@operation(scope="read", needs=("see", "message"), answers=StoredMessageShape)
def show_message(message_id: UUID) -> Response:
    """One message that is stored. 404: it was received, or has expired."""
    with reading(reader()) as conn:
        found = one_stored(conn, message_id, tenant_id=current_actor().tenant_id)
    if found is None:
        abort(404)
    return jsonify(stored_message_shape(found))


@blueprint.get("/messages/expired")
@operation(scope="read", needs=("see", "message"), query={**SEARCHED, **paged()}, answers=Listed[ExpiredMessageShape])
def list_expired_messages(asked: Sent) -> Response:
    """The messages of the last day that nobody had in time, the last to expire first."""
    with reading(reader()) as conn:
        return listed(expired(conn, tenant_id=current_actor().tenant_id, **asked), expired_message_shape)


@blueprint.get("/subscriptions")
@operation(scope="read", needs=("see", "message"), query={**SEARCHED, **paged()}, answers=Listed[SubscriptionShape])
def list_subscriptions(asked: Sent) -> Response:
    """Who waits for which message or signal, and which processes start by one, newest first."""
    with reading(reader()) as conn:
        return listed(subscribed(conn, tenant_id=current_actor().tenant_id, **asked), subscription_shape)


def stored_message_shape(row: StoredMessage) -> StoredMessageShape:
    return shaped(StoredMessageShape, row, variables=plain(row.variables))


def expired_message_shape(row: ExpiredMessage) -> ExpiredMessageShape:
    return shaped(ExpiredMessageShape, row)


def subscription_shape(row: OpenSubscription) -> SubscriptionShape:
    more = {"process_definition_key": row.definition_key, "process_instance_id": row.instance_id}
    return shaped(SubscriptionShape, row, kind=KINDS[row.kind], **more)
