"""Destinations of deliveries: registered, changed, given another secret, tried, removed. For operators."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from flask import Response, abort, current_app, jsonify

from engine.commands.destinations import KINDS as KINDS_OF_DESTINATION
from engine.commands.destinations import (
    LONGEST_OVERLAP,
    MOST_AT_A_TIME,
    MOST_BYTES,
    MOST_REDIRECTS,
    MOST_SECONDS,
    Wanted,
    add_destination,
    change_destination,
    remove_destination,
    rotate_secret,
    send_test,
)
from engine.commands.outcome import DestinationSaved, Refusal, Rejected
from engine.queries.destinations import DestinationRow, destinations
from engine.queries.rows import reading
from engine.webhooks import signing_secret
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, number, one_of, request_id, text, whole
from webapp.api.describing import Sent, operation
from webapp.api.resting import REASON
from webapp.api.schemas import Listed, Moment, words
from webapp.api.shapes import each, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader

NAME = Field(text(longest=63), example="shop")
LIMITS = {
    "kind": Field(one_of(*KINDS_OF_DESTINATION), example="http"),
    "address": Field(text(longest=1_000), about="A URL without query; of mail a domain, or `*`.", example="https://shop.example/hooks"),
    "concurrency": Field(whole(least=1, most=MOST_AT_A_TIME, nullable=True), None, about="How many at a time, of all workers."),
    "retry": Field(text(longest=1_000, empty=True), "", about="For what has no policy of its own.", example="R8/PT10S*2/PT1H"),
    "redirects": Field(whole(most=MOST_REDIRECTS), 0, about="How many are followed."),
    "seconds": Field(number(least=0.1, most=MOST_SECONDS, nullable=True), None, about="Of one attempt, redirects included."),
    "max_bytes": Field(whole(least=1, most=MOST_BYTES, nullable=True), None, about="Of an answer; of a mail, of the mail."),
}


class DestinationShape(TypedDict):
    """`lag_seconds`: how long the oldest that is due, or waits in line, has been so. `secrets`: how many sign now."""

    name: str
    kind: Annotated[str, words(*KINDS_OF_DESTINATION)]
    address: str
    concurrency: int | None
    retry: str | None
    max_attempts: int
    redirects: int
    seconds: float | None
    max_bytes: int | None
    secrets: int
    changed_by: str
    changed_at: Moment
    paused_by: str | None
    paused_at: Moment | None
    pause_reason: str | None
    due: int
    in_line: int
    sending: int
    lag_seconds: float | None


class SecretShape(TypedDict):
    """`secret`: what the receiver verifies signatures with. It is shown this once; null for mail."""

    name: str
    secret: str | None


class SavedShape(TypedDict):
    name: str


class RemovedShape(TypedDict):
    name: str
    outcome: Literal["removed"]


class TriedShape(TypedDict):
    """`delivery_id`: of the test."""

    name: str
    delivery_id: UUID


@blueprint.get("/destinations")
@operation(scope="read", needs=("see", "destination"), answers=Listed[DestinationShape])
def list_destinations() -> Response:
    """All registered destinations, those that lag first."""
    with reading(reader()) as conn:
        return jsonify(items=each(destinations(conn, tenant_id=current_actor().tenant_id), destination_shape), next_cursor=None)


@blueprint.get("/destinations/<name>")
@operation(scope="read", needs=("see", "destination"), answers=DestinationShape)
def get_destination(name: str) -> Response:
    """One destination."""
    with reading(reader()) as conn:
        found = destinations(conn, tenant_id=current_actor().tenant_id, name=name)
    return jsonify(destination_shape(found[0])) if found else abort(404)


@blueprint.post("/destinations")
@operation(scope="operate", body={"name": NAME, **LIMITS, "reason": REASON}, answers={201: SecretShape})
def register(sent: Sent) -> Response:
    """Register a destination.

    The answer has its signing secret, this once. Pause it by `POST /pauses` with its kind and its name as topic.
    """
    name, reason = sent.pop("name"), sent.pop("reason")
    outcome = add_destination(command_connection(), name, Wanted(**sent), actor=current_actor(), reason=reason, request_id=request_id())
    return refused(outcome) if isinstance(outcome, Rejected) else _secret(outcome, 201)


@blueprint.post("/destinations/<name>/change")
@operation(scope="operate", body={**LIMITS, "reason": REASON}, answers=SavedShape, refusals=(Refusal.DESTINATION_CHANGED,))
def change(name: str, sent: Sent) -> Response:
    """Give a destination other limits: all of them, as they are to be."""
    reason = sent.pop("reason")
    outcome = change_destination(command_connection(), name, Wanted(**sent), actor=current_actor(), reason=reason, request_id=request_id())
    return refused(outcome) if isinstance(outcome, Rejected) else jsonify(name=outcome.name)


@blueprint.post("/destinations/<name>/rotate")
@operation(
    scope="operate",
    body={"overlap": Field(number(most=LONGEST_OVERLAP), 86_400.0, about="Seconds that the old secrets sign beside it."), "reason": REASON},
    answers=SecretShape,
)
def rotate(name: str, sent: Sent) -> Response:
    """Make another signing secret; the answer has it, this once."""
    outcome = rotate_secret(command_connection(), name, actor=current_actor(), request_id=request_id(), **sent)
    return refused(outcome) if isinstance(outcome, Rejected) else _secret(outcome, 200)


@blueprint.post("/destinations/<name>/test")
@operation(
    scope="operate",
    body={"to": Field(text(longest=1_000, empty=True), "", about="A path below its address; of mail the recipient.", example="/ping")},
    answers={201: TriedShape},
)
def try_destination(name: str, sent: Sent) -> Response:
    """Send a test: a delivery like any other, with one attempt."""
    outcome = send_test(command_connection(), name, actor=current_actor(), to=sent["to"], request_id=request_id())
    if isinstance(outcome, Rejected):
        return refused(outcome)
    answer = jsonify(name=outcome.destination, delivery_id=outcome.delivery_id)
    answer.status_code = 201
    return answer


@blueprint.post("/destinations/<name>/remove")
@operation(scope="operate", body={"reason": REASON}, answers=RemovedShape)
def remove(name: str, sent: Sent) -> Response:
    """Remove a destination. What was written for it is still sent as it says."""
    outcome = remove_destination(command_connection(), name, actor=current_actor(), request_id=request_id(), **sent)
    return refused(outcome) if isinstance(outcome, Rejected) else jsonify(name=outcome.name, outcome="removed")


def _secret(saved: DestinationSaved, status: int) -> Response:
    key = current_app.config["BATON"].secret_key or str(current_app.secret_key)
    answer = jsonify(name=saved.name, secret=signing_secret(key, saved.salt) if saved.salt else None)
    answer.status_code = status
    answer.headers["Cache-Control"] = "no-store"
    return answer


def destination_shape(row: DestinationRow) -> DestinationShape:
    """`due` and `in_line` are counted up to 1,000."""
    names: Any = DestinationShape.__annotations__
    plain = {name: getattr(row, name) for name in names}
    return {**plain, "changed_at": moment(row.changed_at), "paused_at": moment(row.paused_at)}  # type: ignore[typeddict-item]  # each by its name
