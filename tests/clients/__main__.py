"""python -m tests.clients [--only PACKAGE…] [--tasks N] [--json FILE]"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from tests.clients.check import Found, check, requests
from tests.clients.house import house
from tests.clients.packages import PACKAGES, WAYS, Package
from tests.clients.run import TASKS, Played, play

# fastbpmn asks for a lock on what its last look has shown, though it may have it, or have ended it, by now.
LOST_LOCK = ("POST", "/engine-rest/external-task/{}/lock", 400)


def main(arguments: list[str]) -> int:
    """0: every task of every package ended as it should; 1: not."""
    asked = _asked(arguments)
    results: list[tuple[Played, Found]] = []
    failed = False
    with house() as served:
        print(f"logs in {served.folder}", file=sys.stderr)
        for package in asked.only:
            played = play(served, package, tasks=asked.tasks)
            found = check(served, played)
            results.append((played, found))
            print(_line(package, played, found), flush=True)
            for problem in found.problems[:10]:
                print(f"    {problem}")
            failed = failed or bool(found.problems)
        counted = requests(served.access)
        _tell_requests(counted)
        errors = {" ".join(map(str, each)): times for each, times in counted.items() if each[2] >= 400 and each != LOST_LOCK}
        if errors:
            print(f"expected no refused and no failed request in the access log, found {errors}")
        if failed or errors:
            raise SystemExit(1)  # the house leaves its logs
    if asked.json is not None:
        asked.json.write_text(json.dumps([_report(*each) for each in results], indent=1) + "\n", encoding="utf-8")
    return 0


def _asked(arguments: list[str]) -> argparse.Namespace:
    known = {package.name: package for package in PACKAGES}
    parser = argparse.ArgumentParser(prog="make clients", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", default=list(PACKAGES), type=lambda name: known[name], metavar="PACKAGE", help=", ".join(known)
    )
    parser.add_argument("--tasks", type=int, default=TASKS, help="tasks for each way")
    parser.add_argument("--json", type=Path, help="write the figures there")
    return parser.parse_args(arguments)


def _line(package: Package, played: Played, found: Found) -> str:
    ways = "  ".join(f"{way} {found.done[way]}/{played.tasks}" for way in WAYS if way in found.done)
    middle, longest = found.poll_seconds
    polled = f"from start to end in a poll {middle:.2f} s (longest {longest:.2f})"
    return f"{package.name} {package.version}: {ways}; {polled}; {len(found.problems)} problems, {played.seconds:.0f} s"


def _tell_requests(counted: Counter[tuple[str, str, int]]) -> None:
    for (method, path, status), times in sorted(counted.items(), key=lambda each: (each[0][1], each[0][2])):
        if path.startswith("/engine-rest"):
            print(f"{times:6} {status} {method} {path}")


def _report(played: Played, found: Found) -> dict[str, object]:
    return {
        "package": played.package.name,
        "version": played.package.version,
        "done": found.done,
        "poll_seconds": found.poll_seconds,
        "seconds": round(played.seconds, 1),
        "problems": list(found.problems),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
