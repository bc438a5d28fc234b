"""Random walks through every model of the tests: whatever the simulator can do next is done, and PostgreSQL must tell the same.

A walk is written down as a script, so that one that differs can be kept. Values fit nothing in particular: expressions fail on both
sides alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from engine.bpmn.definition import none_start
from engine.bpmn.misspelled import names_read_in
from engine.core import loops
from engine.core.effects import NewExternalTask, NewJob, NewSubscription, NewTask
from engine.simulation.finding import of
from engine.simulation.house import House
from engine.simulation.play import NotAsExpected, simulate
from engine.simulation.script import Script, parse_script
from engine.simulation.works import MONDAY
from tests.traces.postgres import AUTHOR, OnPostgres
from tests.traces.test_equal_traces import SCRIPTS, endings_of, models_of

STEPS = 12
VALUES: tuple[Any, ...] = (True, False, 0, 3, 2000, 1.5, "x", "2026-02-01", ["a", "b"], [], {"id": 1, "lines": [{"n": 1}]}, None)
PLAYED = sorted({tuple(name for name, _ in models_of(path)): path for path in SCRIPTS.glob("*.script")}.values())


@pytest.mark.parametrize("path", PLAYED, ids=lambda path: path.stem)
def test_a_random_walk_is_told_alike(path: Path, house_of_rows: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "BATCH", 3)
    files = models_of(path)
    script, house = walked(files, Random(path.stem))
    engine = OnPostgres(house_of_rows, files, MONDAY)
    engine.play(script)
    told = [(each.at, each.fact) for each in house.trace]
    assert told == [(each.at, each.fact) for each in engine.trace()], "\n".join(step.text for step in script.steps)
    assert endings_of(house) == engine.endings()


def walked(files: list[tuple[str, bytes]], choose: Random) -> tuple[Script, House]:
    """A script that can be played, and the house in which it was."""
    house = House(person=AUTHOR.username)
    house.deploy(*files)
    lines: list[str] = []
    for _ in range(STEPS):
        line = choose.choice(list(_next(house, choose)))
        try:
            simulate(house, parse_script(line))
        except NotAsExpected:
            continue  # nobody waited, or the case was over
        lines.append(line)
    return parse_script("\n".join(lines)), house


def _next(house: House, choose: Random) -> Iterator[str]:
    """What may be done now, each as a line."""
    elements = [each for p in house.processes.values() for each in (*p.definition.nodes.values(), *p.definition.flows.values())]
    names = sorted({name for each in elements for name in names_read_in(each) if "`" not in name} - {"now", "businessKey", "initiator"})
    for key, process in house.processes.items():
        if none_start(process.definition) is not None and not process.definition.called_only and len(house.cases) < 3:
            yield f"start {_word(key)} as k{len(house.cases)} {_values(names, choose, all_of_them=True)}"
    for what in ("task", "job"):
        seen: dict[str, int] = {}
        for _, leaf in of(house, what):
            number = seen[leaf.element_id] = seen.get(leaf.element_id, 0) + 1
            yield _done(leaf, f"{_word(leaf.element_id)} #{number}", _values(names, choose), choose)
    for _, leaf in house.open(NewSubscription):
        if isinstance(leaf, NewSubscription):
            key = f" key {_word(leaf.correlation_key)}" if leaf.kind == "catch" else ""
            yield f"{'message' if leaf.kind == 'catch' else 'signal'} {_word(leaf.message_name)}{key} {_values(names, choose)}"
    for start in house.starts:
        if len(house.cases) < 3:
            key = f" key k{len(house.cases)}" if start.what == "message" else ""
            yield f"{start.what} {_word(start.name)}{key} {_values(names, choose)}"
    for element in {leaf.element_id for _, leaf in of(house, "incident")}:
        yield f"retry {_word(element)}"
    yield f"advance {choose.choice(('PT10M', 'PT1H', 'P1D', 'P31D'))}"


def _done(leaf: Any, where: str, values: str, choose: Random) -> str:
    match leaf:
        case NewTask():
            return f"complete {where} {values}"
        case NewJob() | NewExternalTask():
            end = choose.choice((f"returns {values}", f"returns {values}", "throws CODE text", 'fails "again"'))
            return f"job {where} {end}"
    raise AssertionError(leaf)


def _values(names: list[str], choose: Random, *, all_of_them: bool = False) -> str:
    chosen = names if all_of_them else choose.sample(names, min(len(names), 2))
    return " ".join(f"`{name}`={json.dumps(choose.choice(VALUES))}" for name in chosen)


def _word(text: str) -> str:
    return json.dumps(text)
