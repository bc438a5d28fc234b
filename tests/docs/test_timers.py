"""docs/timers.md: each row of its table is counted, as its first occurrence and those after it, each handled when it is due."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.bpmn.times import Occurrence, first, following, parse_timer

PAGE = (Path(__file__).parents[2] / "docs" / "timers.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\S+) \| `([^`]+)` \| (\d{4}\S+Z) \| (.+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("zone", "text", "after", "due"), ROWS)
def test_F36_a_timer_is_due_when_the_page_says(zone: str, text: str, after: str, due: str) -> None:
    timer = parse_timer("cycle", text, zone=zone)
    occurrence = first(timer, now=datetime.fromisoformat(after))
    for expected in due.split(", "):
        if expected == "end":
            assert occurrence is None
            return
        assert occurrence is not None
        moment = datetime.fromisoformat(expected)
        assert (occurrence.due_at.astimezone(UTC), occurrence.due_at.utcoffset()) == (moment.astimezone(UTC), moment.utcoffset())
        stored = Occurrence.from_payload(occurrence.payload(), occurrence.due_at.astimezone(UTC))
        occurrence = following(timer, stored, now=occurrence.due_at + timedelta(milliseconds=3))


def test_F36_the_page_has_both_changes_of_the_clocks_and_zones_of_every_kind() -> None:
    seen = {(zone, after[:7]) for zone, _, after, _ in ROWS}
    wanted = {("Europe/Berlin", "2026-03"), ("Europe/Berlin", "2026-10"), ("America/New_York", "2026-03"), ("America/New_York", "2026-10")}
    wanted |= {("Australia/Lord_Howe", "2026-10"), ("Australia/Lord_Howe", "2026-04"), ("Asia/Kolkata", "2026-03")}
    assert wanted <= seen
