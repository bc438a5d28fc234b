"""Process events as webhooks: feeds to registered destinations. Operators."""

from __future__ import annotations

from typing import TypedDict

from flask import Response, jsonify

from engine.commands.event_feeds import add_feed, remove_feed
from engine.commands.outcome import Rejected
from engine.queries.event_feeds import Feed, event_feeds
from engine.queries.rows import reading
from webapp.api.blueprint import blueprint
from webapp.api.bodies import Field, request_id, text
from webapp.api.describing import Sent, operation
from webapp.api.events import kinds
from webapp.api.schemas import Items, Moment
from webapp.api.shapes import each, moment, refused
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader


class FeedShape(TypedDict):
    """`behind`: events that are not in the outbox yet, counted up to 1,000."""

    name: str
    destination: str
    destination_removed: bool
    kinds: list[str]
    process_definition_key: str
    created_by: str
    created_at: Moment
    behind: int


class SavedFeedShape(TypedDict):
    name: str
    destination: str


class RemovedFeedShape(TypedDict):
    name: str


@blueprint.get("/feeds")
@operation(scope="read", needs=("see", "feed"), answers=Items[FeedShape])
def list_feeds() -> Response:
    """The feeds of process events, by name, with how far behind each is."""
    with reading(reader()) as conn:
        found = event_feeds(conn, tenant_id=current_actor().tenant_id)
    return jsonify(items=each(found, feed_shape))


@blueprint.post("/feeds")
@operation(
    scope="operate",
    needs=("add", "feed"),
    body={
        "name": Field(text(longest=63), about="Of the feed; it travels as the header Baton-Feed.", example="to-the-warehouse"),
        "destination": Field(text(longest=63), about="A registered destination for web requests.", example="warehouse"),
        "kinds": Field(kinds, (), about="Only these kinds of events, with commas between them.", example="instance_completed"),
        "process_definition_key": Field(text(empty=True), "", about="Only those of one process."),
    },
    answers={201: SavedFeedShape},
)
def add_event_feed(sent: Sent) -> Response:
    """Send what happens from now on to a destination, each event as a signed delivery of the outbox.

    Deliveries of one case go out one after the other, in the order of the stream.
    """
    sent["definition_key"] = sent.pop("process_definition_key")
    outcome = add_feed(command_connection(), actor=current_actor(), request_id=request_id(), **sent)
    if isinstance(outcome, Rejected):
        return refused(outcome)
    answer = jsonify(name=outcome.name, destination=outcome.destination)
    answer.status_code = 201
    return answer


@blueprint.post("/feeds/<name>/remove")
@operation(scope="operate", needs=("remove", "feed"), answers=RemovedFeedShape)
def remove_event_feed(name: str) -> Response:
    """Write nothing more for a feed. What was written is still sent."""
    outcome = remove_feed(command_connection(), name, actor=current_actor(), request_id=request_id())
    return refused(outcome) if isinstance(outcome, Rejected) else jsonify(name=outcome.name)


def feed_shape(feed: Feed) -> FeedShape:
    return {
        "name": feed.name,
        "destination": feed.destination,
        "destination_removed": feed.destination_removed,
        "kinds": feed.kinds,
        "process_definition_key": feed.definition_key,
        "created_by": feed.created_by,
        "created_at": moment(feed.created_at),
        "behind": feed.behind,
    }
