"""The course of a whole run: cases start in waves, the clock goes from one moment at which something is due to the next.

Each run of a case has a tenant of its own, so that many share one database without hearing each other's messages and
signals; the clock they share.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from engine.bpmn.definition import Problem
from engine.commands.deploy import deploy
from engine.commands.outcome import Actor, InstanceStarted, Rejected
from engine.commands.start import start_instance
from tests.conformance import clock
from tests.conformance.cases import CONSTRAINTS, Case, Run
from tests.conformance.judge import Facts, Verdict, facts_of, judge
from tests.conformance.rewriting import Rewritten, rewrite
from tests.conformance.stage import Stage

GRACE = timedelta(milliseconds=500)  # a case's delay is counted from its start; what it waits for begins a little later
WAVE = {True: 16, False: 200}  # runs that are under way at a time, by whether workers are killed between them


@dataclass(slots=True)
class Playing:
    """One run of a case under way."""

    case: Case
    run: Run
    actor: Actor
    rewritten: Rewritten
    facts: Facts
    ends_at: datetime
    seen: Facts | None = None


def play(stage: Stage, cases: Sequence[Case], *, seed: int) -> Iterator[tuple[Case, Run, Verdict]]:
    """Run every case and yield its verdict, execution cases first, then the files that must be refused."""
    chance = random.Random(seed)
    executed = [(case, run) for case in cases if case.group != CONSTRAINTS for run in case.runs]
    refused = [(case, run) for case in cases if case.group == CONSTRAINTS for run in case.runs]
    size = WAVE[stage.kill]
    for at in range(0, len(executed), size):
        yield from _wave(stage, executed[at : at + size], chance)
    for case, run in refused:
        yield case, run, _verdict(_begin(stage, case, run, chance))


def _wave(stage: Stage, wave: Sequence[tuple[Case, Run]], chance: random.Random) -> Iterator[tuple[Case, Run, Verdict]]:
    playing = [_begin(stage, case, run, chance) for case, run in wave]
    while True:
        stage.settle()
        now = clock.now(stage.conn)
        for each in playing:
            if each.seen is None and each.ends_at <= now:
                each.seen = _what_happened(stage, each)
        open_ = [each for each in playing if each.seen is None]
        stage.kill_workers()
        if not open_:
            break
        stage.move_on(min(each.ends_at for each in open_))
    for each in playing:
        yield each.case, each.run, _verdict(each)
    _clear(stage, playing)


def _begin(stage: Stage, case: Case, run: Run, chance: random.Random) -> Playing:
    """Deploy the case's file under new ids and start what it says."""
    rewritten = rewrite(case, chance)
    actor = Actor("conformance", role="administrator", tenant_id=f"{case.name}-{run.number}-{chance.randrange(10**6)}")
    with stage.conn.cursor() as cursor:
        cursor.executemany("INSERT INTO conformance.script VALUES (%s, %s)", list(rewritten.scripts.items()))
    outcome = deploy(stage.conn, [(case.file, rewritten.xml)], actor=actor, name=case.name)
    deployed = not isinstance(outcome, Rejected)
    facts = Facts(deployed, refusals=_refusals(outcome, rewritten))
    if deployed:
        facts = replace(facts, failed_starts=tuple(_start(stage, case, run, actor, rewritten)))
    return Playing(case, run, actor, rewritten, facts, clock.now(stage.conn) + timedelta(seconds=run.delay_seconds) + GRACE)


def _start(stage: Stage, case: Case, run: Run, actor: Actor, rewritten: Rewritten) -> Iterator[str]:
    own = case.name if case.name in run.start else (run.start or ("",))[-1]
    for process in run.start:
        key = rewritten.new_ids.get(process, process)
        outcome = start_instance(stage.conn, key, actor=actor, variables=dict(run.variables) if process == own else {})
        if not isinstance(outcome, InstanceStarted):
            yield f"start of {process}: {outcome.refusal.value} {rewritten.in_old_words(outcome.detail)}"


def _refusals(outcome: object, rewritten: Rewritten) -> tuple[dict[str, Any], ...]:
    if not isinstance(outcome, Rejected):
        return ()
    if not outcome.problems:
        return ({"element": None, "line": None, "what": f"{outcome.refusal.value} {outcome.detail}", "why": ""},)
    return tuple(
        {
            "element": rewritten.old_id(each.element_id),
            "line": each.line,
            "what": rewritten.in_old_words(each.what),
            "why": rewritten.in_old_words(each.why),
        }
        for each in outcome.problems
        if isinstance(each, Problem)
    )


def _what_happened(stage: Stage, each: Playing) -> Facts:
    if not each.facts.deployed:
        return each.facts
    return replace(facts_of(stage.conn, each.actor.tenant_id), failed_starts=each.facts.failed_starts)


def _verdict(each: Playing) -> Verdict:
    verdict = judge(each.case, each.run, each.seen or each.facts)
    problems = [each.rewritten.in_old_words(told) if isinstance(told, str) else told for told in verdict.problems]
    word = "failed" if each.rewritten.problems and verdict.word == "passed" else verdict.word
    return replace(verdict, word=word, problems=(*each.rewritten.problems, *problems))


def _clear(stage: Stage, playing: Sequence[Playing]) -> None:
    """What a judged case still waits for must not hold up the clock of the next wave."""
    tenants = [each.actor.tenant_id for each in playing]
    stage.conn.execute("UPDATE job SET held = '{judged}' WHERE tenant_id = ANY (%s) AND status = 'available'", (tenants,))
