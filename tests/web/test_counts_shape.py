"""The numbers that a diagram shows on its elements."""

from __future__ import annotations

from engine.queries.processes import ElementCounts
from webapp.operations.processes import counts_shape


def test_what_is_done_around_an_element_counts_at_the_element() -> None:
    counts = [
        ElementCounts(element, tokens, 0, incidents) for element, tokens, incidents in (("a", 1, 0), ("a#before-1", 2, 1), ("b", 3, 0))
    ]
    assert counts_shape(counts) == {"elements": {"a": {"tokens": 3, "incidents": 1}, "b": {"tokens": 3, "incidents": 0}}}
