"""Migrations are one chain: a number for each, in order, whoever landed when."""

from __future__ import annotations

import re

from tests.architecture.sources import ROOT

SAYS = re.compile(r'^(revision|down_revision) = (?:"(\d{4})"|None)$', re.MULTILINE)


def test_each_migration_has_its_number_and_follows_the_one_before():
    files = sorted(path for path in (ROOT / "migrations" / "versions").glob("*.py") if path.name != "__init__.py")
    said = {path.name: dict(SAYS.findall(path.read_text(encoding="utf-8"))) for path in files}
    numbers = [f"{number:04}" for number in range(1, len(files) + 1)]
    assert [name[:4] for name in said] == numbers
    assert [each["revision"] for each in said.values()] == numbers
    assert [each["down_revision"] for each in said.values()] == ["", *numbers[:-1]]
