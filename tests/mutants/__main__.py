"""`python -m tests.mutants`: remove each lock, guard and re-check of the engine in turn; the tests must notice.

--list shows what there is; --only TEXT takes those whose name contains it; --new those that are neither accepted nor killed
before; --jobs N tries N at a time; with --by TEST, a file or one test, only those judge.
Survivors that stand in accepted.toml with a reason are accepted, and tried together; one that stands there and is killed, or
is no more, is an error.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from threading import Lock

from engine.db.session import plain_url
from tests.databases import template
from tests.mutants.find import ROOT, Mutant, mutants
from tests.mutants.run import TIME, Proofs, Verdict, Workshop, is_there, read_killers, write_killers

ACCEPTED = Path(__file__).parent / "accepted.toml"
FEW = 5  # of so many, their killers are proved one by one


@dataclass(frozen=True, slots=True)
class Accepted:
    """`unless`: names of mutants beside which this one would be noticed, so that they are not tried together."""

    reason: str
    unless: frozenset[str]


def main() -> int:
    asked = _arguments()
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has started this in the background
        signal.signal(number, signal.default_int_handler)
    every = mutants()
    accepted = _accepted()
    chosen = [mutant for mutant in every if _asked_for(mutant, asked.only) and not (asked.new and _is_known(mutant, accepted))]
    if asked.list:
        for mutant in chosen:
            print(f"{mutant.name:90} line {mutant.line:4}  {mutant.removed}")
        print(f"{len(chosen)} mutants")
        return 0
    gone = sorted(set(accepted) - {mutant.name for mutant in every})
    with ExitStack() as stack:
        proofs, server = Proofs(), stack.enter_context(_server())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="baton-mutants-")))
        workshops = []
        for number in range(asked.jobs):
            name = f"baton_mutants_{os.getpid()}_{number}"
            stack.enter_context(template(server, name))
            workshops.append(Workshop(folder / str(number), server, name, proofs, judges=asked.by))
        verdicts = _try_all(chosen, workshops, accepted, {mutant.name for mutant in every})
    for test in sorted(proofs.broken):
        print(f"BROKEN    {test} fails without any mutant, or only now and then")
    return _report(verdicts, accepted, gone) or int(bool(proofs.broken))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="those whose name contains TEXT; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many are tried at a time")
    parser.add_argument("--new", action="store_true", help="those that are neither accepted nor known to be killed")
    parser.add_argument(
        "--by", action="append", default=[], metavar="TEST", help="instead of all tests: a file, or FILE::TEST; may be repeated"
    )
    return parser.parse_args()


def _accepted() -> dict[str, Accepted]:
    """By name."""
    rows = tomllib.loads(ACCEPTED.read_text(encoding="utf-8")).get("accepted", [])
    unreasoned = [row.get("name") for row in rows if not row.get("reason", "").strip()]
    if unreasoned:
        raise SystemExit(f"{ACCEPTED.name}: expected a reason for each, found none for {unreasoned}")
    return {row["name"]: Accepted(row["reason"], frozenset(row.get("unless", ()))) for row in rows}


def _asked_for(mutant: Mutant, texts: Sequence[str]) -> bool:
    return not texts or any(text in mutant.name for text in texts)


def _is_known(mutant: Mutant, accepted: Mapping[str, Accepted]) -> bool:
    """Accepted, or killed before by a test that is still there."""
    return mutant.name in accepted or any(is_there(ROOT, test) for test in read_killers().get(mutant.name, ()))


@contextmanager
def _server() -> Iterator[str]:
    """The server of BATON_TEST_SERVER, or one for this run."""
    given = os.environ.get("BATON_TEST_SERVER")
    if given:
        yield plain_url(given)
        return
    from cli.embedded import EmbeddedPostgres

    server = EmbeddedPostgres.for_tests()
    try:
        yield plain_url(server.start())
    finally:
        server.stop()


def _try_all(chosen: Sequence[Mutant], workshops: Sequence[Workshop], accepted: Mapping[str, Accepted], there: set[str]) -> list[Verdict]:
    free: Queue[Workshop] = Queue()
    for workshop in workshops:
        free.put(workshop)
    killers, noting = {name: tests for name, tests in read_killers().items() if name in there}, Lock()
    write_killers(killers)
    if len(chosen) > FEW:
        known = {test for mutant in chosen for test in killers.get(mutant.name, ()) if is_there(ROOT, test)}
        workshops[0].proofs.prove(sorted(known), workshops[0])

    def judge(several: Sequence[Mutant]) -> list[Verdict]:
        workshop = free.get()
        try:
            verdicts = [workshop.judge(several[0], killers)] if len(several) == 1 else workshop.judge_together(several)
        finally:
            free.put(workshop)
        with noting:
            for verdict in verdicts:
                print(f"{verdict.word:9}{verdict.seconds:6.1f} s  {verdict.mutant.name:90} {verdict.by}", flush=True)
                _note(verdict, killers)
        return verdicts

    # The accepted ones first: they run longest.
    tried = [*_together([m for m in chosen if m.name in accepted], accepted), *([m] for m in chosen if m.name not in accepted)]
    with ThreadPoolExecutor(len(workshops)) as pool:
        try:
            return [verdict for verdicts in pool.map(judge, tried) for verdict in verdicts]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for workshop in workshops:
                workshop.stop()
            raise


def _together(several: Sequence[Mutant], accepted: Mapping[str, Accepted]) -> list[list[Mutant]]:
    """As few groups as it takes to keep apart what `unless` keeps apart, and what changes the same text."""

    def apart(one: Mutant, other: Mutant) -> bool:
        overlap = one.path == other.path and one.begin < other.end and other.begin < one.end
        return overlap or other.name in accepted[one.name].unless or one.name in accepted[other.name].unless

    groups: list[list[Mutant]] = []
    for mutant in several:
        group = next((group for group in groups if not any(apart(mutant, each) for each in group)), None)
        if group is None:
            groups.append([mutant])
        else:
            group.append(mutant)
    return groups


def _note(verdict: Verdict, killers: dict[str, list[str]]) -> None:
    """Here and in the file, which another run may have written meanwhile."""
    if verdict.word == "killed" and verdict.by != TIME:
        killers[verdict.mutant.name] = [verdict.by]
        write_killers(read_killers() | {verdict.mutant.name: [verdict.by]})
    elif verdict.word == "survived" and killers.pop(verdict.mutant.name, None):
        write_killers({name: tests for name, tests in read_killers().items() if name != verdict.mutant.name})


def _report(verdicts: Sequence[Verdict], accepted: Mapping[str, Accepted], gone: Sequence[str]) -> int:
    survivors = [v for v in verdicts if v.word == "survived"]
    unknown = [v for v in survivors if v.mutant.name not in accepted]
    invalid = [v for v in verdicts if v.word == "invalid"]
    outlived = [v for v in verdicts if v.word == "killed" and v.mutant.name in accepted]
    print(f"\n{len(verdicts)} mutants: {sum(v.word == 'killed' for v in verdicts)} killed, {len(survivors)} survived.")
    for verdict in survivors:
        if verdict.mutant.name in accepted:
            print(f"accepted  {verdict.mutant.name}\n          {accepted[verdict.mutant.name].reason}")
    for verdict in unknown:
        print(f"SURVIVED  {verdict.mutant.name} (line {verdict.mutant.line})\n          without: {verdict.mutant.removed}")
    for verdict in invalid:
        print(f"INVALID   {verdict.mutant.name}: what is left does not run, or the run itself failed\n{verdict.output[-2500:]}")
    for verdict in outlived:
        print(f"KILLED    {verdict.mutant.name}, though accepted.toml accepts it: take it out there")
    for name in gone:
        print(f"GONE      {name} stands in accepted.toml and is no more: take it out there")
    return 1 if unknown or invalid or outlived or gone else 0


if __name__ == "__main__":
    sys.exit(main())
