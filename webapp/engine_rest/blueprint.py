"""The blueprint of `/engine-rest`, its errors, and what a refused command is told as."""

from __future__ import annotations

from typing import Any, Never

from flask import Blueprint, Response, request
from werkzeug.exceptions import HTTPException

from engine.commands.outcome import Refusal, Rejected
from webapp.errors import rest_exception

blueprint = Blueprint("engine_rest", __name__, url_prefix="/engine-rest")

JSON_BYTES = 8 * 1024 * 1024
"""The largest JSON body: files come as base64 in it. Deployments are multipart and have the application's own limit."""

STATUS = {Refusal.NOT_FOUND: 404, Refusal.NOT_ALLOWED: 403}
"""Every other refusal is 400, as clients of Camunda 7 expect of what cannot be done now."""


@blueprint.before_request
def limit_json() -> None:
    if request.mimetype != "multipart/form-data":
        request.max_content_length = JSON_BYTES


def done() -> Response:
    """204 with an empty body: how success is told."""
    return Response(status=204)


def told(status: int, message: str) -> HTTPException:
    """An exception that ends the request with Camunda's shape: `raise told(400, "…")`."""
    return HTTPException(response=rest_exception(status, message))


def missing(what: str, id: object) -> HTTPException:
    """404 for what is not there, or not to be seen."""
    return told(404, f"{what} with id {id} does not exist")


def refuse(rejected: Rejected, *, what: str = "") -> Never:
    """End the request with a command's refusal. `what` was to be done: "complete external task 41"."""
    said = rejected.detail or rejected.refusal.value.replace("_", " ")
    raise told(STATUS.get(rejected.refusal, 400), f"Cannot {what}: {said}" if what else said)


def known(outcome: Any, *, what: str = "") -> Any:
    """The outcome of a command that was not refused; a refusal ends the request."""
    if isinstance(outcome, Rejected):
        refuse(outcome, what=what)
    return outcome
