"""What the driver was answered against the rows: every answer is true, and nothing happened that nobody asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from tests.faults.storm.checker import Row, Rows, Violation
from tests.faults.storm.journal import Ask


def check(asks: Sequence[Ask], rows: Rows) -> Iterator[Violation]:
    of: dict[str, list[Ask]] = defaultdict(list)
    for ask in asks:
        of[ask.what].append(ask)
        yield from _answered(ask)
    yield from _starts(of["start"], of["publish"], rows)
    yield from _messages(of["publish"], rows)
    yield from _tasks(of, rows)
    yield from _external(of, rows)
    yield from _suspensions(of, rows)


def _answered(ask: Ask) -> Iterator[Violation]:
    who = (ask.request, ask.what)
    if ask.status is None:
        yield Violation("answer", f"never answered, sent {len(ask.sent)} times", who)
    elif ask.status >= 500 or ask.status in (400, 401, 403):
        yield Violation("answer", f"answered {ask.status} {str(ask.body)[:200]}", who)


# ---- cases


def _starts(starts: Sequence[Ask], published: Sequence[Ask], rows: Rows) -> Iterator[Violation]:
    asked = {ask.about["case"]: ask for ask in starts} | {ask.about["key"]: ask for ask in published if ask.about["name"] == "letter"}
    for case, ask in asked.items():
        found = [row for row in rows.named(case) if row["process"] != "parcel"]
        if len(found) > 1:
            yield Violation("doubled", f"asked for once, {len(found)} cases", (case, *(row["id"] for row in found)))
        if not ask.done:
            continue
        told = ask.body.get("id") or ask.body.get("process_instance_id")
        if told is not None and told not in rows.instances:
            yield Violation("lost", "its start was answered, and there is no such case", (case, str(told)))
        elif not found:
            yield Violation("lost", "its start was answered, and there is no case", (case,))
    for row in rows.instances.values():
        if row["process"] != "parcel" and row["business_key"] not in asked:
            yield Violation("doubled", "a case that nobody asked for", (str(row["business_key"]), row["id"]))
    parents = [row["parent_id"] for row in rows.instances.values() if row["parent_id"] is not None]
    for parent in {parent for parent in parents if parents.count(parent) > 1}:
        yield Violation("doubled", "called its process more than once", (parent,))


def _messages(published: Sequence[Ask], rows: Rows) -> Iterator[Violation]:
    received: dict[str, list[Row]] = defaultdict(list)
    stored = {event["item_id"] for event in rows.history if event["kind"] == "message_stored"}
    for event in rows.history:
        if event["kind"] == "message_correlated":
            received[str(event["data"].get("message_id"))].append(event)
    told: set[str] = set()
    for ask in published:
        if not ask.done:
            continue
        message = str(ask.body["message_id"])
        told.add(message)
        who = (message, ask.about["name"], ask.about["key"])
        times = len(received.get(message, ()))
        if times > 1:
            yield Violation("doubled", f"one message was received {times} times", who)
        if ask.body["outcome"] == "stored" and message not in stored:
            yield Violation("lost", "a message was answered as stored, and no event says so", who)
        if times == 0:
            where = "it is still stored" if message in rows.messages else "it is gone"
            yield Violation("lost", f"a message was answered as {ask.body['outcome']}, nobody received it, and {where}", who)
    for message in received.keys() - told:
        yield Violation("doubled", "a message was received whose sender was never told", (message,))


# ---- people


def _tasks(of: dict[str, list[Ask]], rows: Rows) -> Iterator[Violation]:
    completed: dict[str, list[Ask]] = defaultdict(list)
    for ask in of["complete"]:
        if ask.done:
            completed[ask.about["task"]].append(ask)
    for task, wins in completed.items():
        yield from _completed(task, wins, rows)
    for task, row in rows.tasks.items():
        if row["status"] == "completed" and task not in completed:
            yield Violation("doubled", f"completed by {row['ended_by']}, and nobody was told so", (task,))
        yield from _holders(task, row, rows)
    for ask in of["claim"]:
        claims = [event for event in rows.of_item[ask.about["task"]] if event["kind"] == "task_claimed" and event["actor"] == ask.who]
        if ask.done and not claims:
            yield Violation("lost", f"{ask.who} was told to have it, and no event says so", (ask.about["task"], ask.request))


def _completed(task: str, wins: Sequence[Ask], rows: Rows) -> Iterator[Violation]:
    if len({(ask.who, ask.request) for ask in wins}) > 1:
        yield Violation("doubled", f"two presses were told that they completed it: {sorted({ask.who for ask in wins})}", (task,))
    row = rows.tasks.get(task)
    if row is None or row["status"] != "completed" or row["ended_by"] != wins[0].who:
        yield Violation("lost", f"{wins[0].who} was told to have completed it, found {row}", (task,))
        return
    instance = rows.instances.get(row["instance_id"])
    if instance is None:
        yield Violation("lost", f"the task that {wins[0].who} completed is of a case that is not there", (task,))
        return
    values = instance["final_variables"] or {}
    for name, said in wins[0].about["fields"].items():
        if values and values.get(name, {}).get("value") != said:
            yield Violation("lost", f"{name}: expected {said!r}, found {values.get(name)}", (task,))


def _holders(task: str, row: Row, rows: Rows) -> Iterator[Violation]:
    """Nobody takes a task that somebody has, and who completes it is who has it."""
    holder = None
    for event in rows.of_item[task]:
        match event["kind"]:
            case "task_claimed" if holder is not None:
                yield Violation("doubled", f"claimed by {event['actor']} while {holder} had it", (task,))
            case "task_claimed":
                holder = event["actor"]
            case "task_unclaimed":
                holder = None
            case "task_completed" if event["actor"] != holder:
                yield Violation("doubled", f"completed by {event['actor']} while {holder} had it", (task,))


# ---- programs outside


def _external(of: dict[str, list[Ask]], rows: Rows) -> Iterator[Violation]:
    given: dict[tuple[str, int], Ask] = {}
    until: dict[tuple[str, int], datetime] = {}
    for ask in of["acquire"]:
        for task in ask.body.get("items", ()) if ask.done else ():
            lease = (task["id"], task["lease_number"])
            if lease in given:
                yield Violation("lease", f"number {lease[1]} was given out twice", (lease[0], given[lease].request, ask.request))
            given[lease], until[lease] = ask, datetime.fromisoformat(task["lease_expires_at"])
    for ask in of["renew"]:
        lease = (ask.about["task"], ask.about["lease_number"])
        if ask.done:
            until[lease] = max(until[lease], datetime.fromisoformat(ask.body["lease_expires_at"]))
    yield from _finished(of["finish"], rows)
    yield from _taken_back_early(until, rows)
    for ask in of["fail"]:
        if ask.done and not _events(rows, ask, "external_task_failed"):
            yield Violation("lost", "a failure was accepted, and no event says so", (ask.about["task"], ask.request))


def _finished(finished: Sequence[Ask], rows: Rows) -> Iterator[Violation]:
    accepted = set()
    for ask in finished:
        task, number = ask.about["task"], ask.about["lease_number"]
        if not ask.done:
            continue
        accepted.add(task)
        if ask.about["knows_better"]:
            yield Violation("fence", f"completed under number {number}, although a higher one had been given out", (task, ask.request))
        if not _events(rows, ask, "external_task_completed"):
            yield Violation("lost", f"a completion under number {number} was accepted, and no event says so", (task, ask.request))
    for event in rows.history:
        if event["kind"] == "external_task_completed" and event["item_id"] not in accepted:
            yield Violation("doubled", "a task outside was completed, and nobody was told so", (event["item_id"],))


def _events(rows: Rows, ask: Ask, kind: str) -> list[Row]:
    number = ask.about["lease_number"]
    return [event for event in rows.of_item[ask.about["task"]] if event["kind"] == kind and event["data"]["lease_number"] == number]


def _taken_back_early(until: dict[tuple[str, int], datetime], rows: Rows) -> Iterator[Violation]:
    for (task, number), expiry in until.items():
        for event in rows.of_item[task]:
            if event["kind"] == "external_task_recovered" and event["data"]["lease_number"] == number and event["at"] < expiry:
                early = (expiry - event["at"]).total_seconds()
                yield Violation("lease", f"number {number} was taken back {early:.1f} s before it ended for its holder", (task,))


# ---- the operator


MOVES = ("element_entered", "element_left", "flow_taken", "instance_completed")


def _suspensions(of: dict[str, list[Ask]], rows: Rows) -> Iterator[Violation]:
    """Each that was answered is one event, they take turns, and in between nothing of the case moves."""
    for what, kind in (("suspend", "instance_suspended"), ("resume", "instance_resumed")):
        for ask in of[what]:
            case = ask.about["instance"]
            many = sum(other.done for other in of[what] if other.about["instance"] == case)
            events = [event for event in rows.of_instance[case] if event["kind"] == kind]
            if ask.done and len(events) != many:
                yield Violation("lost" if len(events) < many else "doubled", f"{many} were told of {kind}, {len(events)} events", (case,))
    since: dict[str, int] = {}
    for event in rows.history:
        root = rows.instances[event["instance_id"]]["root_id"] if event["instance_id"] in rows.instances else None
        if root is None:
            continue
        if event["kind"] == "instance_suspended":
            since[root] = event["id"]
        elif event["kind"] == "instance_resumed":
            since.pop(root, None)
        elif root in since and event["kind"] in MOVES:
            yield Violation("doubled", f"{event['kind']} {event['element_id']} while the case was suspended", (event["instance_id"],))
