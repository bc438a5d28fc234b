"""`${dateTime().plusWeeks(1).toDate()}`, as models for Camunda 7 write the due date of a task: a duration from when it begins."""

from __future__ import annotations

import re

UNITS = ("Years", "Months", "Weeks", "Days", "Hours", "Minutes", "Seconds")

_PLUS = re.compile(rf"\.plus({'|'.join(UNITS)})\(\s*(\d{{1,6}})\s*\)", re.ASCII)
_WHOLE = re.compile(rf"[$#]\{{\s*(?:dateTime|now)\(\)((?:{_PLUS.pattern})*)(?:\.toDate\(\))?\s*\}}", re.ASCII)


def from_now(text: str) -> str | None:
    """The ISO 8601 duration that a text stands for; None if it is anything else.

    Only sums from the largest unit to the smallest, each once: that is the order in which durations are added, too.
    """
    found = _WHOLE.fullmatch(text.strip())
    if found is None:
        return None
    parts = _PLUS.findall(found[1])
    order = [UNITS.index(unit) for unit, _ in parts]
    if order != sorted(set(order)):
        return None
    amount = {unit: int(number) for unit, number in parts}
    years, months, weeks, days, hours, minutes, seconds = (amount.get(unit, 0) for unit in UNITS)
    return f"P{years}Y{months}M{days + 7 * weeks}DT{hours}H{minutes}M{seconds}S"
