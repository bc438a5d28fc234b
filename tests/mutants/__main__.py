"""`python -m tests.mutants`: remove each lock, guard and re-check of the engine in turn; the tests must notice.

--list shows what there is; --only TEXT takes those whose name contains it; --jobs N tries N at a time. Survivors that
stand in accepted.toml with a reason are accepted; one that stands there and is killed, or is no more, is an error.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Lock

from engine.db.session import plain_url
from tests.mutants.find import Mutant, mutants
from tests.mutants.run import Proofs, Verdict, Workshop, read_killers, write_killers

ACCEPTED = Path(__file__).parent / "accepted.toml"


def main() -> int:
    asked = _arguments()
    every = mutants()
    accepted = _accepted()
    chosen = [mutant for mutant in every if asked.only in mutant.name and not (asked.new and mutant.name in accepted)]
    if asked.list:
        for mutant in chosen:
            print(f"{mutant.name:90} line {mutant.line:4}  {mutant.removed}")
        print(f"{len(chosen)} mutants")
        return 0
    gone = sorted(set(accepted) - {mutant.name for mutant in every})
    with _server() as server, tempfile.TemporaryDirectory(prefix="baton-mutants-") as folder:
        proofs = Proofs()
        workshops = [_workshop(Path(folder) / str(n), server, proofs) for n in range(asked.jobs)]
        verdicts = _try_all(chosen, workshops, {mutant.name for mutant in every})
    for test in sorted(proofs.broken):
        print(f"BROKEN    {test} fails without any mutant")
    return _report(verdicts, accepted, gone) or int(bool(proofs.broken))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--only", default="", metavar="TEXT", help="those whose name contains TEXT")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many are tried at a time")
    parser.add_argument("--new", action="store_true", help="leave out those that accepted.toml accepts")
    return parser.parse_args()


def _accepted() -> dict[str, str]:
    """name -> reason."""
    rows = tomllib.loads(ACCEPTED.read_text(encoding="utf-8")).get("accepted", [])
    unreasoned = [row.get("name") for row in rows if not row.get("reason", "").strip()]
    if unreasoned:
        raise SystemExit(f"{ACCEPTED.name}: expected a reason for each, found none for {unreasoned}")
    return {row["name"]: row["reason"] for row in rows}


@contextmanager
def _server() -> Iterator[str]:
    """The server of BATON_TEST_SERVER, or one for this run."""
    import os

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


def _workshop(folder: Path, server: str, proofs: Proofs) -> Workshop:
    folder.mkdir()
    return Workshop(folder, server, proofs)


def _try_all(chosen: Sequence[Mutant], workshops: Sequence[Workshop], there: set[str]) -> list[Verdict]:
    free: Queue[Workshop] = Queue()
    for workshop in workshops:
        free.put(workshop)
    killers, noting = {name: tests for name, tests in read_killers().items() if name in there}, Lock()

    def judge(mutant: Mutant) -> Verdict:
        workshop = free.get()
        try:
            verdict = workshop.judge(mutant, killers)
        finally:
            free.put(workshop)
        with noting:
            print(f"{verdict.word:9}{verdict.seconds:6.1f} s  {mutant.name:90} {verdict.by}", flush=True)
            if verdict.word == "killed" and verdict.by != "time":
                killers[mutant.name] = [verdict.by]
                write_killers(killers)
            elif verdict.word == "survived" and killers.pop(mutant.name, None):
                write_killers(killers)
        return verdict

    with ThreadPoolExecutor(len(workshops)) as pool:
        return list(pool.map(judge, chosen))


def _report(verdicts: Sequence[Verdict], accepted: dict[str, str], gone: Sequence[str]) -> int:
    survivors = [v for v in verdicts if v.word == "survived"]
    unknown = [v for v in survivors if v.mutant.name not in accepted]
    invalid = [v for v in verdicts if v.word == "invalid"]
    outlived = [v for v in verdicts if v.word == "killed" and v.mutant.name in accepted]
    print(f"\n{len(verdicts)} mutants: {sum(v.word == 'killed' for v in verdicts)} killed, {len(survivors)} survived.")
    for verdict in survivors:
        if verdict.mutant.name in accepted:
            print(f"accepted  {verdict.mutant.name}\n          {accepted[verdict.mutant.name]}")
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
