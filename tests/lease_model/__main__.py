"""`python -m tests.lease_model`: every state of the life cycle, what holds there, and what breaks in engines with other rules."""

from __future__ import annotations

import sys
import time

from tests.lease_model.claims import CLAIMS
from tests.lease_model.explore import LIVENESS, Counterexample, explore
from tests.lease_model.rules import BROKEN, ENGINE


def main() -> int:
    """0: the engine's rules keep every claim, and each other set of rules breaks the one that it should."""
    begun = time.monotonic()
    engine = explore(ENGINE)
    print(f"{ENGINE.name}, {ENGINE.says}:")
    print(
        f"  {engine.states:,} states, {engine.moves:,} moves of {len(engine.actions)} kinds, two workers, {time.monotonic() - begun:.1f} s"
    )
    if engine.broken is not None:
        _show(engine.broken)
        return 1
    for claim in (*CLAIMS, LIVENESS):
        print(f"  holds: {claim}")
    missed = 0
    for rules in BROKEN:
        broken = explore(rules).broken
        print(f"\n{rules.name}: {rules.says}")
        if broken is None:
            print("  expected a counterexample, found none")
        else:
            _show(broken)
        missed += broken is None or broken.claim != rules.breaks
    print(f"\n{len(BROKEN) - missed} of {len(BROKEN)} other sets of rules break what they should, {time.monotonic() - begun:.1f} s in all")
    return 1 if missed else 0


def _show(broken: Counterexample) -> None:
    print(f"  breaks: {broken.claim}")
    turn = len(broken.steps) - broken.again
    for number, step in enumerate(broken.steps, 1):
        if broken.again and number == turn + 1:
            print("      and from here round and round:")
        print(f"  {number:4}. {step}")
    if not broken.again and broken.claim == LIVENESS:
        print("      and then nothing that must happen can happen any more")


if __name__ == "__main__":
    sys.exit(main())
