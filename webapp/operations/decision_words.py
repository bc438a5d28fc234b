"""Decisions in words: hit policies, and values as their authors would write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

SHOWN = 200  # characters of one value

POLICIES = {
    "UNIQUE": "One rule matches at most.",
    "FIRST": "The first rule that matches counts.",
    "PRIORITY": "Of the rules that match, the one with the most important output counts.",
    "ANY": "Several rules may match if they say the same.",
    "COLLECT": "All rules that match count, in any order.",
    "RULE ORDER": "All rules that match count, in the order of the table.",
    "OUTPUT ORDER": "All rules that match count, the most important output first.",
}


def feel_text(value: Any) -> str:
    """A stored value in one line."""
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"


def inputs_text(inputs: Iterable[Mapping[str, Any]]) -> str:
    """ "season = "Winter", guests = 8"."""
    return ", ".join(f"{each['name']} = {feel_text(each['value'])}" for each in inputs)


def decided_text(data: Mapping[str, Any]) -> str:
    """ ""Stew" by rule 3": the result of an evaluation, and what it came from."""
    numbers = [str(rule["number"]) for rule in data.get("rules", ())]
    by = f" by rule{'' if len(numbers) == 1 else 's'} {', '.join(numbers[:20])}" if numbers else ""
    return f"{feel_text(data.get('result'))}{by}"
