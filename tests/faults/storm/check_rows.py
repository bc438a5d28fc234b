"""The rows among themselves: each case's history is exactly what its model makes of it, each lease ends once, nothing is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tests.faults.storm.checker import Row, Rows, Violation
from tests.faults.storm.models import BY_FAULTS, WAYS

ENDS = ("_completed", "_failed", "_recovered", "_released", "timer_fired", "message_correlated")


def check(rows: Rows) -> Iterator[Violation]:
    for instance in rows.instances.values():
        yield from _case(instance, rows)
    for item, events in rows.of_item.items():
        if item is not None:
            yield from _leases(item, events)
    for table, many in rows.left.items():
        if many:
            yield Violation("left over", f"{many} rows of {table} are left")
    for key, delivery in rows.deliveries.items():
        if delivery["status"] != "completed":
            yield Violation("lost", f"a delivery is left {delivery['status']}", (key, delivery["destination"]))


def _case(instance: Row, rows: Rows) -> Iterator[Violation]:
    who = (instance["business_key"] or "", instance["id"])
    if instance["status"] != "completed":
        yield Violation("lost", f"a case of {instance['process']} is left {instance['status']}", who)
        return
    found = Counter(
        (event["kind"], event["element_id"] or "")
        for event in rows.of_instance[instance["id"]]
        if not any(part in event["kind"] for part in BY_FAULTS)
    )
    ways = [way.history() for way in WAYS[instance["process"]]]
    if found in ways:
        return
    expected = min(ways, key=lambda way: sum((way - found).values()) + sum((found - way).values()))
    missing, more = expected - found, found - expected
    if missing:
        yield Violation("lost", f"history of {instance['process']}: expected also {_told(missing)}", who)
    if more:
        yield Violation("doubled", f"history of {instance['process']}: found also {_told(more)}", who)


def _told(events: Counter[tuple[str, str]]) -> str:
    return ", ".join(f"{kind} {element} x{many}".strip() for (kind, element), many in sorted(events.items()))


def _leases(item: str, events: list[Row]) -> Iterator[Violation]:
    """Numbers only rise, each ends once, and nothing happens to an item after it was completed."""
    ends = [event for event in events if event["kind"].endswith(ENDS) and "lease_number" in event["data"]]
    numbers = [event["data"]["lease_number"] for event in ends]
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        told = ", ".join(f"{event['kind']} {event['data']['lease_number']}" for event in ends)
        yield Violation("lease", f"lease numbers do not rise, or one ended twice: {told}", (item,))
    last = [event["kind"] for event in ends]
    final = [index for index, kind in enumerate(last) if kind.endswith("_completed") or kind in ("timer_fired", "message_correlated")]
    if final and final[0] != len(last) - 1:
        yield Violation("doubled", f"after it was completed came {', '.join(last[final[0] + 1 :])}", (item,))
