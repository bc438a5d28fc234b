"""The blueprint of operations: who may in, and what its templates share."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from flask import Blueprint, Response, abort, request

from engine.queries.rows import CAP, BadCursor
from webapp.auth.identity import current_actor, identity, is_operator
from webapp.errors import error_page
from webapp.filters import zone
from webapp.operations.decision_words import decided_text, inputs_text
from webapp.operations.words import (
    age_words,
    clock,
    element_name,
    first_line,
    lease_total,
    lease_width,
    lease_words,
    seconds_words,
    short_words,
    variable_text,
)

blueprint = Blueprint("operations", __name__, url_prefix="/operations")

_OPEN = ("instance", "instance_part", "instance_model", "instance_drawing", "cancel", "suspend", "resume")
OPEN_TO_SOME = frozenset(f"operations.{name}" for name in _OPEN)
"""These ask `may` themselves: an instance has a starter and people with tasks."""


@blueprint.before_request
def operators_only() -> None:
    if identity() is not None and request.endpoint not in OPEN_TO_SOME and not is_operator(current_actor()):
        abort(403)


@blueprint.errorhandler(BadCursor)
def bad_cursor(_: BadCursor) -> Response:
    return error_page(400)


@blueprint.app_template_filter("first_line")
def _first_line(text: str | None) -> str:
    return first_line(text)


@blueprint.app_template_filter("hour")
def _hour(at: datetime) -> str:
    return f"{at.astimezone(zone()):%H:%M}"


@blueprint.context_processor
def words() -> dict[str, Any]:
    return {
        "age_words": age_words,
        "seconds_words": seconds_words,
        "short_words": short_words,
        "clock": clock,
        "lease_width": lease_width,
        "lease_words": lease_words,
        "lease_total": lease_total,
        "element_name": element_name,
        "name_in": lambda definition_id: partial(element_name, definition_id),
        "variable_text": variable_text,
        "decided_text": decided_text,
        "decided_from": inputs_text,
        "CAP": CAP,
    }
