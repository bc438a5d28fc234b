"""Every command that somebody may wish for is there by page, API and command line, or tests/architecture/parity.py says why not."""

from __future__ import annotations

from functools import cache

import pytest

from tests.architecture.parity import NOT_BY_WORKERS, NOT_THERE, READ_OTHERWISE, WAYS
from tests.architecture.reach import METHODS, WORDS, Name, commands, doors, everything, reached, read

OTHER_INTERFACES = ("webapp.api", "webapp.engine_rest")


@cache
def ways() -> dict[str, set[str]]:
    """Way -> the commands that it ends in."""
    return {
        "page": reached(doors("webapp", without=OTHER_INTERFACES)),
        "api": reached(doors("webapp.api")),
        "cli": reached(doors("cli", without=("cli.bench", "cli.samples"), attributes=WORDS)),
    }


def test_the_ways_are_those_of_the_table() -> None:
    assert set(ways()) == set(WAYS)


@pytest.mark.parametrize("name", sorted(each.name for each in commands().values() if each.asks))
def test_a_command_is_there_by_page_api_and_command_line_or_the_table_says_why_not(name: str) -> None:
    missing = {way for way, found in ways().items() if name not in found}
    excused = {way for command, way in NOT_THERE if command == name}
    assert missing == excused, f"{name}: build what is missing, or take off tests/architecture/parity.py what is there now"


def test_every_reason_is_given_for_a_command_that_exists_and_says_something() -> None:
    asked = {each.name for each in commands().values() if each.asks}
    assert {command for command, _ in NOT_THERE} <= asked
    assert {way for _, way in NOT_THERE} <= set(WAYS)
    assert all(len(reason.split()) >= 4 for reason in (*NOT_THERE.values(), *NOT_BY_WORKERS.values()))


def test_what_nobody_asks_for_is_a_workers_or_the_table_says_whose() -> None:
    own = {each.name for each in commands().values() if not each.asks}
    assert own - reached(everything("worker")) == set(NOT_BY_WORKERS)


def test_what_pages_read_the_api_reads_too_or_the_table_says_what_serves_instead() -> None:
    missing = read(doors("webapp", without=OTHER_INTERFACES)) - read(doors("webapp.api"))
    assert missing == set(READ_OTHERWISE), "give programs what the page shows, or say in tests/architecture/parity.py where they find it"


# ---- the finder itself: it sees a command that is used, and it does not see one that is only imported


def test_the_finder_follows_imports_aliases_helpers_and_constants(tmp_path, monkeypatch) -> None:
    found = _found_in(
        tmp_path,
        monkeypatch,
        views="""
from engine.commands.tasks import claim, unclaim
from engine.commands.tasks import assign as give
from engine.commands import jobs
from shop import helper
TABLE = {"a": helper.one}

@blueprint.post("/a")
def direct():
    claim()

@blueprint.post("/b")
def by_alias():
    give()

@blueprint.post("/c")
def by_module_and_table():
    jobs.complete_job()
    return TABLE["a"]

@blueprint.post("/d")
def inside():
    from engine.commands.cancel import cancel_instance
    cancel_instance()

def nobody_calls_me():
    unclaim()
""",
        helper="""
from engine.commands.retry import retry_item
def one():
    return _two()
def _two():
    retry_item()
""",
    )
    assert found == {"claim", "assign", "complete_job", "cancel_instance", "retry_item"}


def _found_in(folder, monkeypatch, **modules: str) -> set[str]:
    from tests.architecture import reach

    (folder / "shop").mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (folder / "shop" / f"{name}.py").write_text(text)
    (folder / "engine" / "commands").mkdir(parents=True)
    for name in ("__init__", "tasks", "jobs", "cancel", "retry"):
        (folder / "engine" / "commands" / f"{name}.py").write_text("")
    monkeypatch.setattr(reach, "ROOT", folder)
    for kept in (reach._read, reach._exists):
        kept.cache_clear()
    try:
        names: list[Name] = doors("shop", attributes=METHODS)
        return reached(names)
    finally:
        for kept in (reach._read, reach._exists):
            kept.cache_clear()
