"""Every script tells the same twice: on the pure core with a movable clock, and on PostgreSQL through the public commands.

The order of what happened, with its data, and how each case ended. Only times of people and ids are left out; the clock stands, so
even the moments are the same. Expectations of the scripts are checked on the way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.bpmn.reader import read_files
from engine.bpmn.support import TABLE
from engine.core import loops
from engine.core.values import typed
from engine.simulation import play
from engine.simulation.house import House
from engine.simulation.run import Run
from engine.simulation.script import Script, parse_script
from engine.simulation.works import MONDAY
from tests.traces.postgres import AUTHOR, OnPostgres

SCRIPTS = Path(__file__).parent / "scripts"
MODELS = Path(__file__).parents[1] / "models"
SAMPLES = Path(__file__).parents[2] / "cli" / "samples"
PLACES = (MODELS, SAMPLES)


def script_of(path: Path) -> Script:
    return parse_script(path.read_text(encoding="utf-8"), path.name)


def models_of(path: Path) -> list[tuple[str, bytes]]:
    """The models that the first line names, else the one of the script's name; with the decisions that have their name."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    names = first.removeprefix("# models:").split() if first.startswith("# models:") else [path.stem]
    found = [path for name in names for place in PLACES for path in (place / f"{name}.bpmn", place / f"{name}.dmn") if path.exists()]
    return [(each.name, each.read_bytes()) for each in found]


def simulated(path: Path) -> House:
    script = script_of(path)
    house = House(at=play.beginning(script, MONDAY), person=AUTHOR.username)
    house.deploy(*models_of(path))
    play.simulate(house, script)
    return house


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.script")), ids=lambda path: path.stem)
def test_the_simulator_and_the_engine_tell_the_same(
    path: Path, house_of_rows: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "BATCH", 3)  # so that the jobs of large loops run, too
    script, house = script_of(path), simulated(path)
    engine = OnPostgres(house_of_rows, models_of(path), play.beginning(script, MONDAY))
    engine.play(script)

    ours, theirs = house.trace, engine.trace()
    assert [(each.at, each.fact) for each in ours] == [(each.at, each.fact) for each in theirs]
    assert endings_of(house) == engine.endings()
    assert ours


def endings_of(house: House) -> list[tuple[str, str, str | None, dict[str, Any]]]:
    runs = [Run(house, case) for case in house.cases]
    return [
        (run.case.definition.key, run.status, run.case.business_key, {name: typed(value).value for name, value in run.variables.items()})
        for run in runs
    ]


# ---- what the scripts cover


def test_every_model_of_the_tests_that_may_be_deployed_has_a_script() -> None:
    played = {name for path in SCRIPTS.glob("*.script") for name, _ in models_of(path)}
    deployable = {path.name for path in MODELS.glob("*.bpmn") if not read_files([(path.name, path.read_bytes())]).problems}
    assert deployable - played == set(), "a new model gets a script in tests/traces/scripts"
    assert len(played) >= 60


def test_every_kind_of_element_that_is_supported_is_in_a_script() -> None:
    files = [file for path in SCRIPTS.glob("*.script") for file in models_of(path)]
    models = [file for file in files if file[0].endswith(".bpmn")]
    nodes = [node for file in models for _, definition in read_files([file]).definitions for node in definition.nodes.values()]
    kinds = {each.kind for each in TABLE.values() if each.kind}
    assert kinds - {node.kind for node in nodes} == set()
    events = {f"{node.kind} {what}" for node in nodes for what in EVENTS if getattr(node.config, what, None)}
    assert events >= EVERY_EVENT
    assert {type(node.loop).__name__ for node in nodes} >= {"StandardLoop", "MultiInstance"}


EVENTS = ("timer", "message", "signal", "condition", "error", "escalation", "compensate", "cancel", "link")
EVERY_EVENT = {
    *(f"start_event {what}" for what in ("timer", "message", "signal", "condition", "error", "compensate")),
    *(f"boundary_event {what}" for what in ("timer", "message", "signal", "condition", "error", "escalation", "compensate", "cancel")),
    *(f"intermediate_catch_event {what}" for what in ("timer", "message", "signal", "condition", "link")),
    *(f"intermediate_throw_event {what}" for what in ("message", "signal", "escalation", "compensate", "link")),
}
