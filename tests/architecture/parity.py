"""Commands that are not there by page, over the API or on the command line, each with the reason. Read by test_parity.py, both ways."""

from __future__ import annotations

WAYS = ("page", "api", "cli")

_LEASED = """
    acquire_external_tasks complete_external_task fail_external_task throw_external_error renew_external_task release_external_task
    report_attempt
"""
_BY_NAME = "held_lease lock_external_task unlock_external_task set_retries set_priority"
_SENT = "publish_message broadcast_signal"


def _each(names: str, reason: str, *ways: str) -> dict[tuple[str, str], str]:
    return {(name, way): reason for name in names.split() for way in ways}


NOT_THERE: dict[tuple[str, str], str] = {
    **_each(_LEASED, "a worker's own doing, under a lease number that no person holds; people release, retry and cancel", "page", "cli"),
    **_each(_BY_NAME, "asked under /engine-rest by programs for Camunda 7; people release, retry and cancel", "page", "api", "cli"),
    **_each(_SENT, "sent by other systems over the API; no page asks a person for the variables of a message yet", "page"),
    **_each("add_feed remove_feed", "set up with the program that listens; pages show its deliveries, and their lag", "page"),
}
"""(command, way) -> why it is not there."""

NOT_BY_WORKERS: dict[str, str] = {
    "keep_drawing": "whoever first looks at a model without a drawing has it laid out and kept",
    "see_external_worker": "called by the web server for programs outside that acquire",
    "take_turn": "called by `upkeep` in its own module, which the workers call",
}
"""Commands without an actor that the worker does not name."""

READ_OTHERWISE: dict[str, str] = {
    "decisions.decisions": "GET /decision-definitions, page by page",
    "decisions.evaluation": "one of GET …/evaluations, which has each as a whole",
    "decisions.evaluations": "GET …/evaluations, page by page",
    "destinations.lags": "GET /destinations, each with its lag; /metrics reads those of all tenants",
    "due.lanes": "GET /overview, whose lanes they are",
    "forms.form_version": "GET /forms?key=…",
    "inbox.inbox_row": "one row of GET /inbox, for the fragment of a list",
    "inbox.process_choices": "GET /process-definitions, by which a list is filtered",
    "instance.called": "GET /process-instances?parent_id=…",
    "instance.timeline": "GET /process-instances/<id>/history, oldest first",
    "instance.variables": "GET /process-instances/<id>/variables; who set each is in the history",
    "instances.count_instances": "GET /process-instances/count, of those that one may see",
    "instances.instances": "GET /process-instances, of those that one may see",
    "live.changes_since_seconds": "hints for open pages; programs read the history",
    "processes.definitions": "GET /process-definitions, page by page",
    "start_page.startable": "GET /process-definitions?startable=true",
    "task.definition_xml": "GET /process-instances/<id>/xml and /drawing",
    "task.display_name": "by_name stands beside by in a refusal",
}
"""Queries of pages that the API does not use -> where programs find the same."""
