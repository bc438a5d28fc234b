"""How two names or keys differ, where they nearly agree. Pure.

Names and keys are compared as they are, so a space or a capital letter is enough to keep a message from who waits for it.
"""

from __future__ import annotations

import unicodedata
from decimal import Decimal, InvalidOperation

CLOSE = {
    "spaces": "only spaces differ",
    "capitals": "only capital letters differ",
    "capitals_and_spaces": "only spaces and capital letters differ",
    "number": "one number, but two texts, and texts are compared",
    "characters": "a character or two differ",
}
"""What `difference` calls close, in words."""

OTHER = "other"
LEAST = 4  # characters of a text in which one that differs is taken for a slip
PADDED = 10  # digits that a number is filled up to with noughts, to look for it
LONG = 8  # from here on, two


def difference(one: str, other: str) -> str:
    """'' for the same text; a key of `CLOSE`; else OTHER."""
    if one == other:
        return ""
    if _without_spaces(one) == _without_spaces(other):
        return "spaces"
    if one.casefold() == other.casefold():
        return "capitals"
    if _without_spaces(one).casefold() == _without_spaces(other).casefold():
        return "capitals_and_spaces"
    if (number := _number(one)) is not None and number == _number(other):
        return "number"
    longest = max(len(one), len(other))
    slips = 0 if longest < LEAST else 1 if longest < LONG else 2
    return "characters" if slips and _edits(one.casefold(), other.casefold(), slips) <= slips else OTHER


def variants(text: str) -> list[str]:
    """Other spellings of a key that are worth a look of their own, since an index does not keep them next to it."""
    spelled = {text.strip(), _without_spaces(text), text.lower(), text.upper(), text.lower().strip(), text.upper().strip()}
    if (number := _number(text)) is not None:
        spelled |= {format(number.normalize(), "f"), text.strip().lstrip("0") or "0"}
    if text.isascii() and text.isdigit():
        spelled |= {text.zfill(digits) for digits in range(len(text) + 1, PADDED + 1)}
    return sorted(spelled - {text})


def alike(one: str, other: str) -> int:
    """How many characters they begin with in common."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _without_spaces(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def _number(text: str) -> Decimal | None:
    if len(text) > 40 or not any(sign.isdigit() for sign in text):
        return None
    try:
        found = Decimal(text.strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() and abs(found.adjusted()) < 40 else None


def _edits(one: str, other: str, most: int) -> int:
    """Characters to insert, delete or replace; counted up to one more than `most`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    start = alike(one, other)
    one, other = one[start:], other[start:]
    end = alike(one[::-1], other[::-1])
    one, other = one[: len(one) - end], other[: len(other) - end]
    before = list(range(len(other) + 1))
    for row, left in enumerate(one, 1):
        here = [row]
        for column, right in enumerate(other, 1):
            here.append(min(before[column] + 1, here[-1] + 1, before[column - 1] + (left != right)))
        if min(here) > most:
            return most + 1
        before = here
    return before[-1]
