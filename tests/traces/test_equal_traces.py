"""Every script tells the same twice: on the pure core with a movable clock, and on PostgreSQL through the public commands.

The order of what happened, with its data, and how each case ended. Only times of people and ids are left out; the clock stands, so
even the moments are the same. Expectations of the scripts are checked on the way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

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
    """The models that the first line names, else the one of the script's name."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    names = first.removeprefix("# models:").split() if first.startswith("# models:") else [path.stem]
    found = [next(place / f"{name}.bpmn" for place in PLACES if (place / f"{name}.bpmn").exists()) for name in names]
    return [(each.name, each.read_bytes()) for each in found]


def simulated(path: Path) -> House:
    script = script_of(path)
    house = House(at=play.beginning(script, MONDAY), person=AUTHOR.username)
    house.deploy(*models_of(path))
    play.simulate(house, script)
    return house


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.script")), ids=lambda path: path.stem)
def test_the_simulator_and_the_engine_tell_the_same(path: Path, house_of_rows: psycopg.Connection[Any]) -> None:
    script, house = script_of(path), simulated(path)
    engine = OnPostgres(house_of_rows, models_of(path), play.beginning(script, MONDAY))
    engine.play(script)

    ours, theirs = house.trace, engine.trace()
    assert [(each.at, each.fact) for each in ours] == [(each.at, each.fact) for each in theirs]
    assert _endings(house) == engine.endings()
    assert len(ours) > 3


def _endings(house: House) -> list[tuple[str, str, str | None, dict[str, Any]]]:
    runs = [Run(house, case) for case in house.cases]
    return [
        (run.case.definition.key, run.status, run.case.business_key, {name: typed(value).value for name, value in run.variables.items()})
        for run in runs
    ]
