"""The rules that the engine follows, and those of engines that somebody once built: each of these breaks a claim."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Rules:
    """`breaks`: the name of the claim (claims.py) for which the model must find a counterexample.

    `people`: operators and cancels; without them, counterexamples are what a night without anybody looks like.
    """

    name: str
    says: str
    breaks: str = ""
    fence: Literal["number", "attempts", "none"] = "number"
    recovery_in_one_statement: bool = True
    recovery_knows_the_last_attempt: bool = True
    recovery_gives_the_attempt_back: bool = False
    renewal_looks_at_the_status: bool = True
    unknown_outcome_is_asked_under_the_lease: bool = True
    own_deadline_comes_first: bool = True
    people: bool = True
    workers: int = 2


ENGINE = Rules("engine", "what engine/db/acquire.py and engine/commands do")

_ALONE = replace(ENGINE, people=False)
BROKEN = (
    replace(
        _ALONE,
        name="no fence",
        says="a report is guarded by the status `leased` alone",
        breaks="no report counts under a number that is not the row's",
        fence="none",
    ),
    replace(
        _ALONE,
        name="attempts as the fence",
        says="a report is guarded by the attempt; one that was given back comes again",
        breaks="no report counts under a number that is not the row's",
        fence="attempts",
    ),
    replace(
        _ALONE,
        name="recovery that reads, then writes",
        says="one statement reads what expired, another writes it by its id",
        breaks="a lease ends once, and then it is not held",
        recovery_in_one_statement=False,
    ),
    replace(
        _ALONE,
        name="unknown outcome made again",
        says="after a lost connection the step is made again without its guard",
        breaks="an item is completed once",
        unknown_outcome_is_asked_under_the_lease=False,
    ),
    replace(
        _ALONE,
        name="renewal that revives",
        says="a renewal looks at the number, not at the status",
        breaks="a lease ends once, and then it is not held",
        renewal_looks_at_the_status=False,
    ),
    replace(
        _ALONE,
        name="deadline from the answer",
        says="a worker counts its deadline from the answer, so that the lease may expire first",
        breaks="no handler starts under a lease that has expired",
        own_deadline_comes_first=False,
    ),
    replace(
        _ALONE,
        name="recovery without a last attempt",
        says="a recovered item is always free again, even when no attempt is left",
        breaks="everything comes to rest",
        recovery_knows_the_last_attempt=False,
        workers=1,
    ),
    replace(
        _ALONE,
        name="recovery that gives the attempt back",
        says="a lost lease spends no attempt",
        breaks="everything comes to rest",
        recovery_gives_the_attempt_back=True,
        workers=1,
    ),
)
