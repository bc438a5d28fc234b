"""The short form of `make faults`: everything fails once, in some two minutes, behind PgBouncer and with a promoted standby."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.storm.monkey import KINDS, schedule
from tests.faults.storm.run import Plan, storm

SEED, SECONDS = 4, 75.0


def test_the_same_seed_makes_the_same_faults_and_another_seed_others():
    assert schedule(7, 300) == schedule(7, 300)
    assert schedule(7, 300) != schedule(8, 300)


@pytest.mark.parametrize("seed", [1, 2, 3, SEED])
def test_every_kind_of_fault_comes_in_the_short_form(seed: int):
    assert {fault.kind for fault in schedule(seed, SECONDS)} == {*KINDS, "promote_standby"}


@pytest.mark.faults
@pytest.mark.slow
def test_F26_F29_F30_F42_F44_F45_a_storm_of_faults_loses_nothing_and_doubles_nothing_inside(tmp_path: Path):
    report = storm(Plan(SEED, SECONDS), keep=tmp_path)
    assert not report.found, "\n".join(report.lines())
    assert {*KINDS, "promote_standby"} <= {*report.faults}
    assert report.leases_recovered, "no lease was ever taken back: the faults did not happen"
    assert report.cases["order"] > 20
    assert report.looks > 100
