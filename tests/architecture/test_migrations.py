"""Migrations stand in one line, in the order of their numbers; two that were made at the same time are seen before a database is."""

from __future__ import annotations

import re

from tests.architecture.sources import ROOT


def test_each_migration_follows_the_one_with_the_number_before() -> None:
    files = sorted((ROOT / "migrations" / "versions").glob("[0-9]*.py"))
    texts = {path.name[:4]: path.read_text(encoding="utf-8") for path in files}
    assert len(texts) == len(files), f"two migrations have one number: {[path.name for path in files]}"
    before = "None"
    for number, text in texts.items():
        assert re.findall(r"^(?:down_)?revision = \"?(\w+)\"?$", text, re.MULTILINE) == [number, before]
        before = number
