"""What the receivers saw against the rows: each effect at least once, under one id, and not oftener than there were attempts (R7)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.faults.storm.checker import Rows, Violation

# Process -> paths of its effects, with the element that has them.
EFFECTS = {
    "order": {"reserve": "/reserve/{}", "note": "/note/{}", "notify": "/notify/{}"},
    "letter": {"file_it": "/letter/{}"},
}


def check(effects: Sequence[tuple[str, str]], rows: Rows) -> Iterator[Violation]:
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for key, path in effects:
        seen[path][key] += 1
    for instance in rows.instances.values():
        for element, form in EFFECTS.get(instance["process"], {}).items():
            path = form.format(instance["business_key"])
            items = seen.pop(path, Counter())
            done = {
                event["item_id"]: event["data"]["lease_number"]
                for event in rows.of_instance[instance["id"]]
                if event["element_id"] == element and event["kind"] in ("job_completed", "delivery_completed")
            }
            yield from _effect(path, items, done)
    for path, items in seen.items():
        yield Violation("effect", "the receiver saw what belongs to no case", (path, *items))


def _effect(path: str, items: Counter[str], done: dict[str, int]) -> Iterator[Violation]:
    """`items`: key -> times seen; `done`: item -> the number of its last lease."""
    for item in done.keys() - items.keys():
        yield Violation("lost", "an item completed whose effect nobody saw", (path, item))
    if len(items) > 1:
        yield Violation("doubled", f"one effect under {len(items)} ids", (path, *sorted(items)))
    for item, times in items.items():
        if item not in done:
            yield Violation("lost", "the receiver saw an effect of an item that never completed", (path, item))
        elif times > done[item]:
            yield Violation("doubled", f"seen {times} times in {done[item]} attempts", (path, item))
