"""Static files under addresses that change with their content, so that browsers may keep them for a year."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from flask import Flask, Response, request, url_for

FOREVER = "public, max-age=31536000, immutable"


def init_app(app: Flask) -> None:
    folder = Path(app.static_folder or "")
    marks: dict[str, str] = {}

    def asset(name: str) -> str:
        """The address of static file `name`. A missing file fails the page's test, not the reader's page."""
        if name not in marks or app.debug:
            marks[name] = sha256((folder / name).read_bytes()).hexdigest()[:10]
        return url_for("static", filename=name, v=marks[name])

    def keep(response: Response) -> Response:
        if request.endpoint == "static" and response.status_code in (200, 304):
            response.headers["Cache-Control"] = FOREVER if "v" in request.args else "public, max-age=300"
        return response

    app.jinja_env.globals["asset"] = asset
    app.after_request(keep)
