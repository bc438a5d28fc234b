"""The mutation tool finds what it must find, and what its lists name is still there. The mutants themselves: `make mutants`."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter

from tests.architecture.sources import ROOT
from tests.mutants.find import mutants

FOUND = mutants()
ACCEPTED = tomllib.loads((ROOT / "tests" / "mutants" / "accepted.toml").read_text(encoding="utf-8")).get("accepted", [])
LOCK = re.compile(r"\bFOR (?:NO KEY UPDATE|UPDATE|KEY SHARE)\b")


def test_every_mutant_has_a_name_of_its_own_and_leaves_a_file_that_compiles():
    assert [name for name, count in Counter(mutant.name for mutant in FOUND).items() if count > 1] == []
    for mutant in FOUND:
        text = (ROOT / mutant.path).read_text(encoding="utf-8")
        assert mutant.applied(text) != text, mutant.name
        if mutant.path.endswith(".py"):
            ast.parse(mutant.applied(text))


def test_every_lock_of_the_plpgsql_functions_has_a_mutant():
    for path in sorted((ROOT / "engine" / "db" / "sql").glob("*.sql")):
        locks = LOCK.findall(re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8")))
        name = path.relative_to(ROOT).as_posix()
        found = [mutant for mutant in FOUND if mutant.path == name and mutant.kind.startswith("FOR ")]
        assert len(found) == len(locks), name


def test_every_comparison_of_a_lease_number_in_the_plpgsql_functions_has_a_mutant():
    for path in sorted((ROOT / "engine" / "db" / "sql").glob("*.sql")):
        compared = re.findall(r"\bAND \w+\.lease_number = ", re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8")))
        name = path.relative_to(ROOT).as_posix()
        found = [mutant for mutant in FOUND if mutant.path == name and mutant.kind == "lease number"]
        assert len(found) == len(compared), name


def test_whoever_locks_a_case_first_re_checks_what_it_finds():
    for path in sorted((ROOT / "engine" / "commands").glob("*.py")):
        locked = len(re.findall(r"= lock_(?:case|delivery)\(", path.read_text(encoding="utf-8")))
        name = path.relative_to(ROOT).as_posix()
        found = [mutant for mutant in FOUND if mutant.path == name and mutant.kind == "re-check"]
        assert len(found) >= locked, f"{name}: expected a comment that begins with `# Re-check` below each lock"


def test_every_advisory_lock_of_the_plpgsql_functions_has_a_mutant():
    call = re.compile(r"\b(?:PERFORM|NOT) (?:pg_(?:try_)?advisory_xact_lock\w*|baton_lock_(?:subscription_)?keys)\(")
    for path in sorted((ROOT / "engine" / "db" / "sql").glob("*.sql")):
        locks = call.findall(re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8")))
        name = path.relative_to(ROOT).as_posix()
        found = [mutant for mutant in FOUND if mutant.path == name and mutant.kind == "advisory lock"]
        assert len(found) >= len(locks), name


def test_each_kind_of_what_is_removed_is_found():
    kinds = Counter(mutant.kind for mutant in FOUND)
    assert {"SKIP LOCKED", "FOR NO KEY UPDATE", "FOR UPDATE", "FOR KEY SHARE", "lease number", "status", "assignee"} <= set(kinds)
    assert {"revision", "mark", "expiry", "attempts", "guard member", "re-check", "advisory lock"} <= set(kinds)


def test_what_is_accepted_is_there_and_has_a_reason():
    names = {mutant.name for mutant in FOUND}
    assert [row["name"] for row in ACCEPTED if row["name"] not in names] == []
    assert [row["name"] for row in ACCEPTED if not re.match("Equivalent|Unreachable", row.get("reason", ""))] == []
    assert [row["name"] for row in ACCEPTED if not names.issuperset(row.get("unless", ()))] == []
