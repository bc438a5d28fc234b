"""The checker of the storm is no rubber stamp: each of eight broken engines is reported (the whole one is not: test_storm_checker)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.storm.run import Plan, Report, servers, stage
from tests.faults.storm.sabotage import SABOTAGES, reported
from tests.faults.storm.topology import Topology

pytestmark = [pytest.mark.faults, pytest.mark.slow]
SECONDS = 90.0  # of traffic without any fault, at the most: it ends when the sabotage has come to light


@pytest.fixture(scope="module")
def topology(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    with servers(tmp_path_factory.mktemp("servers"), whole=False) as made:
        yield made


def _played(topology: Topology, folder: Path, sabotage: int) -> Report:
    topology.fresh(f"sabotage_{sabotage}")
    plan = Plan(1, SECONDS, faults=False, sabotage=sabotage, workers=1, webs=1, to_the_end=False)
    with stage(plan, topology, folder, print) as scene:
        return scene.play()


@pytest.mark.parametrize("number", SABOTAGES, ids=lambda number: SABOTAGES[number].name.replace(" ", "_"))
def test_each_sabotage_is_reported(topology: Topology, tmp_path: Path, number: int):
    report = _played(topology, tmp_path, number)
    assert reported(number, report.found), f"expected of {SABOTAGES[number]}\n" + "\n".join(report.lines())
