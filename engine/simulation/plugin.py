"""The pytest plugin: a fixture `process`, for tests of processes in a few lines. docs/testing-processes.md has an example.

Nothing but the name is loaded until a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from engine.simulation.run import Model


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Callable[..., Model]:
    """`process("order.bpmn", "check.bpmn", at="2026-01-05T09:00:00Z", person="author")`: models deployed for this test alone.

    Files are looked for beside the test, then where pytest was started, then in its root folder.
    """
    from engine.bpmn.times import parse_moment
    from engine.simulation.house import House
    from engine.simulation.run import Model
    from engine.simulation.works import MONDAY

    places = [request.path.parent, request.config.invocation_params.dir, request.config.rootpath]

    def deployed(*files: str | Path, at: str | datetime = MONDAY, person: str = "author") -> Model:
        house = House(at=parse_moment(at), person=person)
        found = [_found(file, places) for file in files]
        house.deploy(*[(path.name, path.read_bytes()) for path in found])
        return Model(house)

    return deployed


def _found(file: str | Path, places: list[Path]) -> Path:
    for place in places:
        if (place / file).is_file():
            return place / file
    raise FileNotFoundError(f"expected a model {file} in {', '.join(dict.fromkeys(map(str, places)))}, found none")
