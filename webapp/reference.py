"""The page on which people read the description of the API, and try it with their own session: Swagger UI, vendored."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, current_app, render_template

from webapp.api.openapi import METHODS, PREFIX, description

blueprint = Blueprint("reference", __name__)


@blueprint.get("/api-reference")
def show() -> Any:
    """Without JavaScript: the list of operations, which stands in the page."""
    paths = description(current_app)["paths"]
    operations = [
        (method, f"{PREFIX}{path}", item[method.lower()]["summary"])
        for path, item in paths.items()
        for method in METHODS
        if method.lower() in item
    ]
    return render_template("reference.html", here="reference", operations=operations)
