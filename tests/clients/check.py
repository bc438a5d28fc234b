"""The join: what the clients said, what the rows and the history say, and what the access log says. Every difference is a problem."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.clients.house import House
from tests.clients.run import DOCUMENT, Played

# What `retries` a client is shown each time that it has a task: what it gave is what it is shown next.
SHOWN: dict[str, list[int | None]] = {"failure": [None, 2, 1], "unlock": [None, None], "incident": [None, 1]}
FAILURES = {"failure": 2, "incident": 1}
SLOWEST_POLL_SECONDS = 10.0  # half of a poll's own end: what is found sooner was found by waiting for it

_ENDED = """
SELECT i.id::text AS instance_id, i.status, extract(epoch FROM i.ended_at - i.started_at)::float8 AS seconds, i.final_variables,
  (SELECT count(*) FROM history c WHERE c.instance_id = i.id AND c.kind = 'external_task_created') AS created,
  (SELECT count(*) FROM history c WHERE c.instance_id = i.id AND c.kind = 'external_task_failed') AS failed,
  (SELECT count(*) FROM external_task e WHERE e.instance_id = i.id) AS left_over,
  (SELECT count(*) FROM incident n WHERE n.instance_id = i.id) AS incidents,
  (SELECT jsonb_agg(jsonb_build_object('kind', c.kind, 'task', c.item_id, 'lease', c.data -> 'lease_number', 'attempt', c.data -> 'attempt',
      'owner', c.data ->> 'owner') ORDER BY c.id)
     FROM history c WHERE c.instance_id = i.id AND c.kind IN ('external_task_completed', 'error_caught')) AS ends
FROM process_instance i WHERE i.id = ANY (%s::uuid[]) ORDER BY i.started_at, i.id
"""


@dataclass(frozen=True, slots=True)
class Found:
    """`poll_seconds`: (median, longest) from the start of a case to its end while the client waits. `done`: way -> tasks."""

    problems: tuple[str, ...]
    done: dict[str, int]
    poll_seconds: tuple[float, float]
    refused: int


def check(house: House, played: Played) -> Found:
    problems: list[str] = []
    done: dict[str, int] = {}
    polls: list[float] = []
    said = _by_task(played)
    for way, instances in played.started.items():
        found = [_Case(*row) for row in house.rows(_ENDED, instances)]
        done[way] = sum(case.status == "completed" for case in found)
        if len(found) != played.tasks:
            problems.append(f"{way}: expected {played.tasks} cases, found {len(found)}")
        for number, case in enumerate(found):
            problems += [f"{way} {number}: {text}" for text in _wrong(played, way, number, case, said)]
        if way == "poll":
            polls = [case.seconds for case in found]
    refused = [line for line in played.told if line["did"] == "refused"]
    problems += [f"a client was refused: {line}" for line in refused[:5]]
    if polls and max(polls) > SLOWEST_POLL_SECONDS:
        problems.append(f"poll: expected each case to end within {SLOWEST_POLL_SECONDS:g} s of its start, found {max(polls):.1f}")
    unknown = set(said) - {
        end["task"] for way in played.started for case in house.rows(_ENDED, played.started[way]) for end in case[-1] or []
    }
    problems += [f"a client told of a task that no row knows as done: {task}" for task in sorted(unknown)[:5]]
    return Found(tuple(problems), done, (median(polls), max(polls)) if polls else (0.0, 0.0), len(refused))


@dataclass(frozen=True, slots=True)
class _Case:
    instance_id: str
    status: str
    seconds: float
    final_variables: dict[str, Any] | None
    created: int
    failed: int
    left_over: int
    incidents: int
    ends: list[dict[str, Any]] | None


def _wrong(played: Played, way: str, number: int, case: _Case, said: dict[str, Counter[str]]) -> Iterator[str]:
    """What is wrong with one case and its one task."""
    if case.status != "completed" or case.left_over or case.incidents:
        yield f"expected completed with nothing left over, found {case.status}, {case.left_over} tasks, {case.incidents} incidents"
        return
    ends = case.ends or []
    kind = "error_caught" if way == "error" else "external_task_completed"
    if [end["kind"] for end in ends] != [kind] or case.created != 1:
        yield f"expected one task with one end, {kind}, found {case.created} and {ends}"
        return
    (end,) = ends
    shown = SHOWN.get(way, [None])
    failures, leases = FAILURES.get(way, 0), len(shown)
    retries = [line["retries"] for line in played.told if line["did"] == "took" and line["task"] == end["task"]]
    if way == "failure" and not played.package.waits:
        # It acts on what its last look but one has shown: a task that it has just failed may be failed as one that never was.
        failures, leases, shown = case.failed, case.failed + 1, retries if {*retries[:-1]} <= {None, 2} and retries[-1] == 1 else shown
    if (end["lease"], end["attempt"]) != (leases, 1 + failures) or case.failed != failures:
        yield f"expected lease {leases}, attempt {1 + failures}, {failures} failures, found {end} and {case.failed} failures"
    if not _is_owner(played, way, end["owner"]):
        yield f"expected it done by the {'second' if way == 'killed' else 'first'} client, found {end['owner']}"
    if retries != shown:
        yield f"expected a client to be shown the retries {shown}, found {retries}"
    expected = {"took": leases, "error" if way == "error" else "completed": 1, **({"failed": failures} if failures else {})}
    if way in BESIDES:
        expected[BESIDES[way]] = 1
    heard = {word: count for word, count in said.get(end["task"], Counter()).items() if word not in ("refused", "locked")}
    if heard != expected:
        yield f"expected the client to tell {expected}, found {heard}"
    yield from _wrong_values(played, way, number, case.final_variables or {})


BESIDES = {"extend": "extended", "unlock": "unlocked", "incident": "retried"}


def _is_owner(played: Played, way: str, owner: str) -> bool:
    """fastbpmn makes a worker id of its own for each task, from its name."""
    expected = played.second_worker if way == "killed" else played.dead_worker
    return owner == expected or (not played.package.waits and owner.startswith(f"{expected}-"))


def _wrong_values(played: Played, way: str, number: int, final: dict[str, Any]) -> Iterator[str]:
    """Every value once there and back, each with its kind."""
    if way == "error":
        expected: dict[str, Any] = {"why": ("string", "a strike")}
    else:
        expected = {
            "square": ("integer", number * number),
            "said": ("string", f"Nº {number} – 人!"),
            "half": ("double", number / 2),
            "not_flag": ("boolean", number % 2 != 0),
            "back": ("json", DOCUMENT),
        }
        if "at" in final:
            expected["at_back"] = ("datetime", "2026-11-30T10:00:00+00:00")
    for name, (kind, value) in expected.items():
        given = final.get(name, {})
        if (given.get("type"), given.get("value")) != (kind, value):
            yield f"variable {name}: expected {kind} {value!r}, found {given}"


def _by_task(played: Played) -> dict[str, Counter[str]]:
    """Task -> how often a client told each word of it."""
    said: dict[str, Counter[str]] = defaultdict(Counter)
    for line in played.told:
        if line["task"] is not None:
            said[line["task"]][line["did"]] += 1
    return dict(said)


# ---- the access log

_LINE = re.compile(r"(?P<method>[A-Z]+) (?P<path>\S+) (?P<status>\d{3}) (?P<ms>\d+)")
_IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/key/)[^/]+")


def requests(log: Path) -> Counter[tuple[str, str, int]]:
    """(method, path without ids, status) -> how often."""
    counted: Counter[tuple[str, str, int]] = Counter()
    for line in log.read_text(encoding="utf-8").splitlines():
        found = _LINE.fullmatch(line.strip())
        assert found is not None, f"access log: expected METHOD PATH STATUS MILLISECONDS, found {line!r}"
        counted[found["method"], _IDS.sub("{}", found["path"]), int(found["status"])] += 1
    return counted
