"""The checker of the storm is no rubber stamp: each of eight broken engines is reported (the whole one is not: test_storm_checker)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.storm.run import Plan, Report, servers, stage
from tests.faults.storm.sabotage import NAMES
from tests.faults.storm.topology import Topology

pytestmark = [pytest.mark.faults, pytest.mark.slow]
SECONDS = 5.0  # of traffic, without any fault


@pytest.fixture(scope="module")
def topology(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    with servers(tmp_path_factory.mktemp("servers"), whole=False) as made:
        yield made


def _played(topology: Topology, folder: Path, sabotage: int) -> Report:
    topology.fresh(f"sabotage_{sabotage}")
    with stage(Plan(1, SECONDS, faults=False, sabotage=sabotage, workers=1, webs=1), topology, folder, print) as scene:
        return scene.play()


@pytest.mark.parametrize("number", NAMES, ids=lambda number: NAMES[number][0].replace(" ", "_"))
def test_each_sabotage_is_reported(topology: Topology, tmp_path: Path, number: int):
    _, rule = NAMES[number]
    report = _played(topology, tmp_path, number)
    assert rule in {each.rule for each in report.found}, f"expected a violation of {rule!r}\n" + "\n".join(report.lines())
