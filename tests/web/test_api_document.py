"""docs/api.md names every route of the API, and no route that is not there."""

from __future__ import annotations

import re
from pathlib import Path

from flask import Flask

DOCUMENT = Path(__file__).parents[2] / "docs" / "api.md"
METHODS = frozenset({"GET", "POST", "PUT", "DELETE", "PATCH"})


def as_written(rule: str) -> str:
    """`/api/v1/tasks/<uuid:task_id>` as the document writes it."""
    bare = re.sub(r"<[a-z]+:", "<", rule.removeprefix("/api/v1"))
    return bare.replace("<instance_id>", "<id>")


def test_the_document_and_the_routes_are_the_same(app: Flask) -> None:
    rules = [rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/api/")]
    served = {f"{method} {as_written(rule.rule)}" for rule in rules for method in METHODS & (rule.methods or set())}
    written = set(re.findall(r"`((?:GET|POST|PUT|DELETE|PATCH) /[^` ]+)`", DOCUMENT.read_text(encoding="utf-8")))
    assert written == served
