"""Who may import whom, where a lock may be spelled, and that each says what it locks."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from engine.db import locks
from engine.db.functions import function_files
from engine.db.locks import Level
from tests.architecture.sources import ROOT, name, python_files, texts

LOCK = re.compile(
    r"\bFOR\s+(NO\s+KEY\s+)?UPDATE\b|\bFOR\s+(KEY\s+)?SHARE\b|\bSKIP\s+LOCKED\b|\bpg_(try_)?advisory_\w+|\bLOCK\s+TABLE\b", re.IGNORECASE
)
WHERE_LOCKS_ARE_SPELLED = ("engine/db/locks.py", "engine/db/acquire.py")
EXCEPTIONS = {
    "engine/db/migrate.py": "a session lock around a migration, while no command runs",
    "engine/commands/upkeep.py": "tries a lock that only upkeep knows, to be the only one at it; it never waits",
    "cli/bench/raw_command.py": "the yardstick: it imitates a command without using the engine",
}
LOCKING_METHODS = re.compile(r"\.with_for_update\(")


def test_the_layers_hold():
    # In a process of its own: in this one it would silence every logger that exists.
    program = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    ran = subprocess.run([sys.executable, "-c", program, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_lock_is_spelled_only_where_the_lock_order_is_kept():
    found = {name(path) for path in python_files() if any(LOCK.search(text) for _, text in texts(path))}
    assert found - set(WHERE_LOCKS_ARE_SPELLED) == set(EXCEPTIONS), "a lock elsewhere escapes the lock order of engine/db/locks.py"


def test_the_rest_of_the_sql_files_locks_nothing():
    outside = [path for path in ROOT.rglob("*.sql") if not name(path).startswith(("engine/db/sql/", ".", "build/"))]
    assert outside
    for path in outside:
        statements = re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8"))
        assert not LOCK.search(statements), f"{name(path)} spells a lock"


def test_the_orm_locks_nothing():
    assert not [name(path) for path in python_files() if LOCKING_METHODS.search(path.read_text(encoding="utf-8"))]


# ---- every lock declares its level (tests/lock_order.py watches by these declarations)

SKIPS = re.compile(r"\bFOR\s+(?:NO\s+KEY\s+)?UPDATE(?:\s+OF\s+\w+)?\s+SKIP\s+LOCKED", re.IGNORECASE)
FUNCTION = re.compile(r"\bbaton_(?:lock|open|take|cancel)\w*(?=\s*\()")


def _strings(value: object) -> list[str]:
    """The texts of a module's constant."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict | tuple | list):
        return [text for each in (value.values() if isinstance(value, dict) else value) for text in _strings(each)]
    return []


def test_every_text_of_locks_that_locks_is_declared():
    declared = {text for _, text in locks.FRAGMENTS}
    own = {key: value for key, value in vars(locks).items() if key not in ("FRAGMENTS", "__doc__") and not key.startswith("__")}
    templates = {locks.TAKEN_AWAY, locks.ROOT_OF_ITEM, locks.ROOT_OF_ITEM_IF_FREE}  # declared once for each table
    found = [text for value in own.values() for text in _strings(value) if LOCK.search(text)]
    assert found
    assert not [text for text in found if text not in declared | templates], "a lock without a level"


def test_acquire_spells_no_lock_that_waits():
    outside = [text for _, text in texts(ROOT / "engine/db/acquire.py") if LOCK.search(SKIPS.sub("", text))]
    assert not outside, "what waits belongs into locks.py, with its level"


def test_every_function_that_is_called_for_its_lock_is_declared():
    called = {match.group() for path in python_files("engine") for _, text in texts(path) for match in FUNCTION.finditer(text)}
    assert called <= set(locks.FUNCTIONS)


@pytest.mark.parametrize("function", sorted({key for key, text in function_files().items() if LOCK.search(text) or key in locks.FUNCTIONS}))
def test_a_function_takes_the_levels_that_it_declares_in_their_order(function):
    found = dict.fromkeys(_levels(function))
    if function in ("baton_lock_deployment", "baton_lock_deletion", "baton_lock_decisions", "baton_lock_forms"):
        # The advisory locks of message keys under numbers of their own: a name with a control character is no message name.
        what = {"baton_lock_decisions": "decision", "baton_lock_forms": "form"}.get(function, "deployment")
        assert f"chr(29) || '{what}'" in function_files()[function]
        found = {Level.DEPLOYMENT if level is Level.KEYS else level: None for level in found or (Level.KEYS,)}
    if function == "baton_lock_gathering":  # the same, at its own place in the order
        assert "chr(29) || 'gathering'" in function_files()[function]
        found = {Level.DEFINITION: None}
    assert tuple(found) == locks.FUNCTIONS[function]


def _levels(function: str) -> list[Level]:
    """By the text of its body: rows that it locks or changes, keys, and what the functions take that it calls."""
    body = re.sub(r"--[^\n]*", "", function_files()[function]).split("$$")[1]
    found: list[Level] = []
    for statement in body.split(";"):
        for match in re.finditer(
            r"(?P<keys>pg_advisory_xact_lock)|(?P<called>baton_(?:lock|open|take|cancel)\w*)\(|\b(?:UPDATE|DELETE FROM) (?P<changed>\w+)"
            r"|\bFROM (?P<locked>\w+)[^;]*?\bFOR (?:NO KEY UPDATE|UPDATE|KEY SHARE)",
            statement,
        ):
            if match["keys"]:
                found.append(Level.KEYS)
            elif match["called"]:
                found += locks.FUNCTIONS[match["called"]]
            elif table := match["changed"] or match["locked"]:
                found += [locks.TABLES[table]] if table in locks.TABLES else []
    return found
