"""Start a process: what may be started, its form, and what came of it."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, render_template

from engine.queries.rows import reading
from engine.queries.start_page import startable
from webapp.auth.identity import current_actor
from webapp.db import reader

blueprint = Blueprint("start", __name__)


@blueprint.get("/start")
def index() -> Any:
    with reading(reader()) as conn:
        processes = startable(conn, current_actor())
    return render_template("start/index.html", processes=processes, here="start")
