"""Habits that a tool can check: the clock, the environment, lengths, what is left behind."""

from __future__ import annotations

import ast
import re

from tests.architecture.sources import ROOT, every_file, name, python_files

# Due and expiry arithmetic happens in SQL on the database's clock (R11). These show or keep a time, and decide nothing.
WALL_CLOCK = {
    "cli/bench/queue_handlers.py": "when a handler of the bench was started, for its latency",
    "cli/devservices.py": "when a call arrived, for the page that shows it",
    "cli/mailsink.py": "when a mail arrived, in the name of its file",
    "worker/outbox.py": "the time in a webhook's signature, which the receiver compares with its own",
    "webapp/errors.py": "the time on an error page, when the database may be away",
}
CLOCKS = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today"), ("time", "time"), ("time", "time_ns")}

ENVIRONMENT = {
    "engine/config.py": "THE place where configuration is read",
    "cli/up.py": "hands the environment on to its children; was BATON_LISTEN set or is it the default",
    "cli/bench/server.py": "a bench may be given a server; hands the environment on",
    "worker/children.py": "hands the environment on to handler processes, without the engine's secrets",
    "cli/web.py": "hands a secret key on to gunicorn's processes",
}

LONGEST = 400
LONGEST_TEST = 450
LONGER = {
    "engine/core/run.py": (440, "one class: the moves on one advance, which call one another"),
    "engine/db/acquire.py": (500, "every SKIP LOCKED in one file, by rule"),
    "engine/config.py": (460, "THE configuration: every variable in one table"),
    "cli/bench/raw_command.py": (400, "taken unchanged"),
}

LEFT_BEHIND = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def _calls(path) -> set[tuple[str, str]]:
    """Every `name.attribute` in a file."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {(node.value.id, node.attr) for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}


def test_R11_the_wall_clock_is_read_only_where_it_decides_nothing():
    assert {name(path) for path in python_files("engine", "webapp", "worker", "cli") if _calls(path) & CLOCKS} == set(WALL_CLOCK)


def test_the_environment_is_read_in_one_place():
    reads = {("os", "environ"), ("os", "getenv")}
    assert {name(path) for path in python_files("engine", "webapp", "worker", "cli") if _calls(path) & reads} == set(ENVIRONMENT)


def test_no_file_outgrows_the_limit_and_the_exceptions_are_needed():
    too_long = {}
    for path in [*python_files(), *python_files("tests")]:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        limit = LONGER.get(name(path), (LONGEST_TEST if name(path).startswith("tests/") else LONGEST, ""))[0]
        if lines > limit:
            too_long[name(path)] = lines
    assert not too_long
    assert not [each for each in LONGER if not (ROOT / each).exists()], "an exception for a file that is gone"


def test_nothing_is_left_for_later():
    texts = {".py", ".sql", ".html", ".js", ".css", ".md", ".bpmn", ".toml", ""}
    found = [
        name(path)
        for path in every_file()
        if path.suffix in texts and "vendor" not in path.parts and path.name != "test_habits.py" and LEFT_BEHIND.search(_text(path))
    ]
    assert not found


def _text(path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
