"""R10 over the route table: whatever changes something hands the sender's request id on, so that a repeat has its answer."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

from flask import Flask

# What needs none, and why.
WITHOUT = {
    "api.acquire": "a lease is its own answer: what was leased and not told comes back when the lease ends",
    "api.set_a_password": "the same password set twice is the same password",
}
CHANGES = {"POST", "PUT", "PATCH", "DELETE"}


def reads_a_request_id(view: Any) -> bool:
    """In its own text, or in that of a function of the API which it calls."""
    view = inspect.unwrap(view)
    text = inspect.getsource(view)
    module = sys.modules[view.__module__]
    called = [getattr(module, name, None) for name in re.findall(r"\b(\w+)\(", text)]
    helpers = [inspect.getsource(each) for each in called if inspect.isfunction(each) and each.__module__.startswith("webapp.api.")]
    return any("request_id()" in each for each in (text, *helpers))


def test_R10_every_route_of_the_api_that_changes_something_reads_a_request_id(app: Flask) -> None:
    changing = {
        rule.endpoint for rule in app.url_map.iter_rules() if rule.endpoint.startswith("api.") and CHANGES & (rule.methods or set())
    }
    assert len(changing) > 15
    without = {endpoint for endpoint in changing if not reads_a_request_id(app.view_functions[endpoint])}
    assert without == set(WITHOUT)
