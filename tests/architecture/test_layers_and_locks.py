"""Who may import whom, and where a lock may be spelled."""

from __future__ import annotations

import re

from importlinter.cli import lint_imports

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
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), is_debug_mode=False, cache_dir=None) == 0


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
