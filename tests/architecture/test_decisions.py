"""Decisions have numbers that say which one is meant: one page each, without gaps, and whatever refers to one finds it."""

from __future__ import annotations

import re
from itertools import pairwise

from tests.architecture.sources import ROOT, every_file, name

NUMBERS = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("[0-9][0-9][0-9][0-9]-*.md"))
COUNTED_SINCE = 90  # before that each subject had a range of its own
REFERRED = re.compile(r"\bdecisions?[ /]+(0\d{3})\b((?:(?:,| and) 0\d{3}\b)*)", re.IGNORECASE)
WRITTEN = (".md", ".py", ".sql", ".html", ".toml", ".txt")


def test_every_decision_has_a_number_of_its_own_and_the_next_one_follows():
    assert [number for number, following in pairwise(NUMBERS) if number == following] == []
    counted = [number for number in NUMBERS if number >= COUNTED_SINCE]
    assert counted == list(range(COUNTED_SINCE, COUNTED_SINCE + len(counted)))


def test_every_decision_that_is_referred_to_has_a_page():
    referred = {
        (name(path), int(number))
        for path in every_file()
        if path.suffix in WRITTEN
        for first, more in REFERRED.findall(path.read_text(encoding="utf-8", errors="ignore"))
        for number in re.findall(r"0\d{3}", first + more)
    }
    assert len(referred) > 50
    assert sorted(each for each in referred if each[1] not in NUMBERS) == []
