"""The parsers of the built-in elements, a file per kind. `load` puts them into the table of `support.py`."""

from __future__ import annotations

from engine.bpmn.elements import boundary, call_activity, catch, end, gateways, service_task, start, subprocess, tasks, throw, user_task


def load() -> None:
    """Register the built-in elements. Called once, when the reader is imported."""
    for module in (start, end, catch, throw, boundary, gateways, user_task, service_task, tasks, subprocess, call_activity):
        module.register_all()
