"""python -m tests.faults.storm [--seed N] [--minutes M] [--sabotage N] [--json FILE] [--keep FOLDER] [--schedule]"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.faults.storm.monkey import schedule
from tests.faults.storm.run import Plan, storm

SABOTAGE_SECONDS = 90.0  # at the most: until it is reported


def main(arguments: list[str]) -> int:
    """0: nothing is wrong; 1: there are violations."""
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same faults at the same times")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--sabotage", type=int, default=0, choices=range(9), help="break the engine in one of eight ways, without faults")
    parser.add_argument("--json", type=Path, help="write the report there")
    parser.add_argument("--keep", type=Path, help="a folder for the journal and the logs")
    parser.add_argument("--schedule", action="store_true", help="only show what would happen when")
    asked = parser.parse_args(arguments)
    if asked.schedule:
        print("\n".join(map(str, schedule(asked.seed, asked.minutes * 60))))
        return 0
    if asked.sabotage:
        plan = Plan(asked.seed, SABOTAGE_SECONDS, faults=False, sabotage=asked.sabotage, workers=1, webs=1)
    else:
        plan = Plan(asked.seed, asked.minutes * 60)
    report = storm(plan, say=lambda line: print(line, flush=True), keep=asked.keep)
    print("\n".join(report.lines()))
    if asked.json is not None:
        asked.json.write_text(json.dumps(report.as_json(), indent=1) + "\n", encoding="utf-8")
    return 1 if report.found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
