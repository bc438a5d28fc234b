"""docs/keys.md has the scopes as they are."""

from __future__ import annotations

import re

from engine.commands.scopes import ROLES, SCOPES
from tests.architecture.sources import ROOT


def test_the_table_of_scopes_is_that_of_the_code() -> None:
    text = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    whose = {"user": "everybody", "operator": "operators, administrators", "administrator": "administrators"}
    assert set(whose) == set(ROLES)
    assert told == [(name, scope.opens, whose[scope.least_role]) for name, scope in SCOPES.items()]
