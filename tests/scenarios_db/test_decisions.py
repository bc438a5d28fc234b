"""Decisions through the database and through the simulator: the same model, the same choices, the same story."""

from __future__ import annotations

import pytest

from engine.simulation.house import House
from engine.simulation.run import Model
from tests.scenarios_db.stage import MODELS, Run, Stage

FILES = [(name, (MODELS / name).read_bytes()) for name in ("dinner_for_guests.bpmn", "dinner_for_guests.dmn")]
TOLD = ("decision_evaluated", "task_created", "flow_taken", "instance_completed")


def dinner(stage: Stage, degrees: float, guests: int) -> Run:
    stage.deploy_files(FILES)
    return stage.start("dinner_for_guests", degrees=degrees, guests=guests)


@pytest.mark.parametrize(
    ("degrees", "guests", "dish", "bought"),
    [
        (3, 12, {"dish": "Roast", "hours": 4}, ["meat", "potatoes for 12"]),
        (3, 8, {"dish": "Stew", "hours": 1}, None),
        (25, 8, {"dish": "Salad", "hours": 1}, None),
        (25, 1, {"dish": "Bread", "hours": 0}, None),
    ],
)
def test_what_is_cooked_follows_from_the_tables_in_the_database_and_in_the_simulator(
    stage: Stage, degrees: float, guests: int, dish: object, bought: list[str] | None
) -> None:
    run = dinner(stage, degrees, guests)
    house = House()
    house.deploy(*FILES)
    simulated = Model(house).start(degrees=degrees, guests=guests)
    assert (run.variables["dish"], run.variables.get("list")) == (dish, bought)
    assert (simulated.variables["dish"], simulated.variables.get("list")) == (dish, bought)
    assert run.tasks == simulated.tasks == ["cook"]
    assert run.told(*TOLD) == [f"{each.kind} {each.element_id}" for each in house.trace if each.kind in TOLD]


def test_a_new_table_changes_what_is_cooked_from_then_on_and_the_old_choices_stay(stage: Stage) -> None:
    run = dinner(stage, 3, 12)
    changed = FILES[1][1].replace(b"<text>&gt; 8</text>", b"<text>&gt; 20</text>").replace(b"[2..8]", b"[2..20]")
    stage.deploy_files([("dinner_for_guests.dmn", changed)])
    later = stage.start("dinner_for_guests", degrees=3, guests=12)
    assert (run.variables["dish"]["dish"], later.variables["dish"]["dish"]) == ("Roast", "Stew")
    assert run.tasks == later.tasks == ["cook"]
