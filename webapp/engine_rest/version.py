"""Which Camunda 7 this answers like."""

from __future__ import annotations

from flask import Response, jsonify

from webapp.engine_rest.blueprint import blueprint

VERSION = "7.20.0"
"""The release whose REST description was followed. Clients that look at it choose what they may send by it."""


@blueprint.get("/version")
def version() -> Response:
    return jsonify(version=VERSION)


@blueprint.get("/engine")
def engines() -> Response:
    """The engines of this server: one."""
    return jsonify([{"name": "default"}])
