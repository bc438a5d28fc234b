"""Process events as a stream: read on from a place, or wait there. For operators: it tells of every case."""

from __future__ import annotations

import base64
import binascii
import time
from dataclasses import dataclass, replace
from typing import Any, TypedDict
from uuid import UUID

from flask import Response, jsonify, request

from engine.queries.events import LAST_ID, MOST_KINDS, START, Place, ProcessEvent, Read, Wanted, events_after
from engine.queries.rows import BadCursor, reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, Wrong, accepting, one_of, text, uuid, whole
from webapp.api.describing import Sent, operation
from webapp.api.event_polls import event_polls
from webapp.api.schemas import Moment
from webapp.api.shapes import each, moment
from webapp.auth.identity import current_actor
from webapp.db import reader
from webapp.engine_rest.waiting import Waiter
from webapp.parking import PARKS, TICKET, Parked, has_gone

LONGEST_WAIT = 50


class ProcessEventShape(TypedDict):
    """`id` grows in the order of writing, which is not the order of the stream. `data` depends on the kind."""

    id: int
    at: Moment
    kind: str
    process_instance_id: UUID | None
    root_instance_id: UUID | None
    process_definition_key: str | None
    version: int | None
    business_key: str | None
    element_id: str | None
    item_id: UUID | None
    actor: str
    via: str
    data: dict[str, Any]


class EventsShape(TypedDict):
    """`next_cursor` is always there: ask on from it, now or in a month."""

    items: list[ProcessEventShape]
    next_cursor: str


@dataclass(frozen=True, slots=True)
class Asked:
    place: Place | None
    wanted: Wanted
    limit: int


@accepting({"type": "string", "pattern": "^[a-z_]+(,[a-z_]+)*$", "maxLength": 2000})
def kinds(value: Any) -> tuple[str, ...]:
    found = tuple(value.split(",")) if isinstance(value, str) else ()
    if not found or not all(kind and kind.replace("_", "").isascii() and kind.replace("_", "").isalpha() for kind in found):
        raise Wrong("expected names of kinds, with commas between them")
    if len(found) > MOST_KINDS:
        raise Wrong(f"expected at most {MOST_KINDS} kinds, found {len(found)}")
    return found


@blueprint.get("/events")
@operation(
    scope="read",
    needs=("see", "job"),
    query={
        "cursor": Field(text(), None, about="`next_cursor` of the answer before. Without one: as `from` says."),
        "from": Field(one_of("now", "start"), "now", about="`start`: everything that is kept."),
        "kinds": Field(kinds, (), about="Only these kinds of events, with commas between them."),
        "process_definition_key": Field(text(), ""),
        "root_instance_id": Field(uuid, None, about="Only those of one case."),
        "wait_seconds": Field(whole(most=LONGEST_WAIT), 0, about="How long to wait where there is nothing yet."),
        "limit": Field(whole(least=1, most=1000), 100),
    },
    answers=EventsShape,
)
def process_events(asked: Sent) -> Response:
    """Process events after a place, in an order in which none is passed over.

    What commits late comes late, and never before a place that you have read already. Each event is told once by a cursor that is handed
    on; who asks from the same place again is told again.
    """
    waiter = request.environ.get(TICKET)
    if waiter is None:
        wanted = Wanted(asked["kinds"], asked["process_definition_key"], asked["root_instance_id"])
        found = Asked(_place(asked["cursor"]) if asked["cursor"] else START if asked["from"] == "start" else None, wanted, asked["limit"])
        actor = current_actor()
        ends = time.monotonic() + asked["wait_seconds"]
        waiter = Waiter(event_polls(), found, (actor.tenant_id, actor.username), {}, ends)
        return _answer(waiter, joined=False)
    return _answer(waiter, joined=True)


def _answer(waiter: Waiter, *, joined: bool) -> Response:
    """What is there, or nothing at the end of the time; until then the request waits, without a thread."""
    waits_on = False
    try:
        asked: Asked = waiter.asked
        with reading(reader()) as conn:
            read = events_after(conn, asked.place, asked.wanted, tenant_id=current_actor().tenant_id, limit=asked.limit)
        done = read.events or waiter.over or time.monotonic() >= waiter.ends or has_gone(request.environ) or not request.environ.get(PARKS)
        waiter.asked = replace(asked, place=read.place)
        waits_on = not done and (joined or waiter.polls.join(waiter))
    finally:
        if joined and not waits_on:
            waiter.polls.leave(waiter)
    if waits_on:
        raise Parked(waiter)
    return jsonify(items=each(read.events, event_shape), next_cursor=_cursor(read))


def event_shape(event: ProcessEvent) -> ProcessEventShape:
    return {
        "id": event.id,
        "at": moment(event.at),
        "kind": event.kind,
        "process_instance_id": event.instance_id,
        "root_instance_id": event.root_id,
        "process_definition_key": event.definition_key,
        "version": event.version,
        "business_key": event.business_key,
        "element_id": event.element_id,
        "item_id": event.item_id,
        "actor": event.actor,
        "via": event.via,
        "data": event.data,
    }


def _cursor(read: Read) -> str:
    return base64.urlsafe_b64encode(f"{read.place.xid}.{read.place.id}".encode()).decode().rstrip("=")


def _place(cursor: str) -> Place:
    """Raises BadCursor for what `_cursor` did not make."""
    try:
        words = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii").split(".")
    except (binascii.Error, UnicodeDecodeError):
        words = []
    numbers = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 20]
    if len(words) != 2 or len(numbers) != 2 or max(numbers) > LAST_ID:
        raise BadCursor(f"expected the next_cursor of an answer, found {cursor[:40]!r}")
    return Place(*numbers)
