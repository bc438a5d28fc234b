"""docs/cli.md has every command as it is."""

from __future__ import annotations

from cli.main import COMMANDS, baton
from cli.reference import written
from tests.architecture.sources import ROOT


def test_the_command_line_is_documented_as_it_is() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert text == written(baton), "run: .venv/bin/python -m cli.main commands --document > docs/cli.md"
    assert all(f"`baton {name}" in text for name in COMMANDS)


def test_every_command_says_in_a_sentence_what_it_does() -> None:
    for line in written(baton).splitlines():
        if line.startswith("| `baton"):
            assert len(line.split(" | ")[1]) > 10, line
