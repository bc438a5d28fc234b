"""Schemathesis asks the whole API, over HTTP, from its own description: what fits it, what does not, and one thing after another.

Half of the addresses that it makes up are replaced by those of things that are there, else it would hear little but 404.
"""

from __future__ import annotations

import threading
import traceback
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import schemathesis
from flask import Flask
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import Status, events, from_schema
from werkzeug.serving import make_server

CHECKS = {
    # What only `read` of a reader knows (surrogates, depth, a name that means nobody) is 422 for data that fits its schema.
    "positive_data_acceptance": {"expected-statuses": ["2xx", "3xx", "401", "403", "404", "409", "412", "422"]},
    # An If-Match that was made up is looked at before what the body says.
    "negative_data_rejection": {"expected-statuses": ["400", "401", "403", "404", "405", "409", "412", "413", "415", "422"]},
    # Its own notion of a key that must be refused includes those of the session beside it.
    "ensure_resource_availability": {"enabled": False},
    "use_after_free": {"enabled": False},
}


PHASES = ("examples", "coverage", "fuzzing", "stateful")


def ask(
    app: Flask,
    key: str,
    *,
    known: Mapping[str, Sequence[str]],
    spared: frozenset[str] = frozenset(),
    examples: int,
    seed: int = 1,
    phases: Sequence[str] = PHASES,
    only: str | None = None,
) -> list[str]:
    """Ask every operation (of the path `only`) with this API key. What failed, a line each.

    `spared`: values of paths that are left alone: whoever asks is not to disable themselves.
    """
    config = SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "headers": {"Authorization": f"Bearer {key}"},
            "generation": {"max-examples": examples, "database": "none", "allow-x00": False},
            "phases": {name: {"enabled": name in phases} for name in PHASES},
            "checks": CHECKS,
            "continue-on-failure": True,
            "suppress-health-check": ["all"],
        }
    )
    with served(app) as address:
        schema = schemathesis.openapi.from_url(f"{address}/api/v1/openapi.json", config=config, headers={"Authorization": f"Bearer {key}"})

        if only is not None:
            schema = schema.include(path=only)

        @schema.hook
        def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
            return path_parameters and {name: _known(value, known.get(name, ())) for name, value in path_parameters.items()}

        @schema.hook
        def filter_case(context: Any, case: Any) -> bool:
            return not spared.intersection(map(str, (case.path_parameters or {}).values()))

        return sorted(set(_failures(from_schema(schema).execute())))


@contextmanager
def served(app: Flask) -> Iterator[str]:
    """The application on a port of its own."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()


def _failures(run: Any) -> Iterator[str]:
    for event in run:
        match event:
            case events.ScenarioFinished(status=Status.FAILURE | Status.ERROR):
                yield from _failed(event)
            case events.NonFatalError() | events.FatalError():
                error = getattr(event, "value", None) or getattr(event, "exception", None)
                yield f"{getattr(event, 'label', '')}: " + "".join(traceback.format_exception(error)[-4:])


def _known(value: Any, there: Sequence[str]) -> Any:
    place = zlib.crc32(str(value).encode(errors="replace"))
    return there[place // 2 % len(there)] if there and place % 2 else value


def _failed(event: events.ScenarioFinished) -> list[str]:
    lines = []
    for case_id, checks in event.recorder.checks.items():
        for check in checks:
            if check.status is Status.FAILURE and check.failure_info is not None:
                case = event.recorder.cases[case_id].value
                failure = check.failure_info.failure
                told = f"{failure.title}: {failure.message}".replace("\n", " ")[:400]
                lines.append(f"{case.method} {case.path} [{check.name}] {told} <- {_asked(case)}")
    return lines


def _asked(case: Any) -> str:
    return f"path={case.path_parameters} query={case.query} body={case.body!r}"[:400]


def things(conn: psycopg.Connection[Any]) -> dict[str, list[str]]:
    """Path parameter -> the values that lead to something."""
    found = {
        "task_id": "SELECT id FROM user_task UNION ALL SELECT id FROM external_task",
        "instance_id": "SELECT id FROM process_instance",
        "item_id": "SELECT id FROM job UNION ALL SELECT id FROM external_task",
        "message_id": "SELECT id FROM message",
        "incident_id": "SELECT id FROM incident",
        "token_id": "SELECT id FROM token",
        "deployment_id": "SELECT id FROM deployment",
        "username": "SELECT username FROM person",
        "key": "SELECT DISTINCT key FROM process_definition",
        "version": "SELECT DISTINCT version FROM process_definition",
    }
    return {name: [str(row[0]) for row in conn.execute(sql)] for name, sql in found.items()}
