"""The README draws the life of durable work as engine/core/lifecycle.py has it, and links to what exists."""

from __future__ import annotations

import re
from pathlib import Path

from engine.core import lifecycle

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_picture_of_durable_work_has_the_edges_of_its_map() -> None:
    diagram = README.split("stateDiagram-v2")[1].split("```")[0]
    drawn = set(re.findall(r"^\s*([a-z]+) --> ([a-z]+)", diagram, flags=re.M))
    assert drawn == {(before, after) for before, following in lifecycle.WORK.items() for after in following}
    ends = set(re.findall(r"([a-z]+) --> \[\*\]", diagram))
    assert ends == lifecycle.final(lifecycle.WORK)


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
