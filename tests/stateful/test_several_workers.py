"""Whatever several workers, two people, an operator and a bad network do in whatever order: every step is judged, and all ends well.

BATON_EXPLORE=1 makes other runs, and more of them. What must have happened, and that a broken guard is found, is sure by scripts
(scripts.py) through the same rules, whatever is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from engine.commands import failure, jobs, start
from engine.db import acquire
from tests.databases import Databases
from tests.stateful import scripts
from tests.stateful.rules import House

EXPLORES = "BATON_EXPLORE" in os.environ
EXAMPLES, STEPS = (150, 60) if EXPLORES else (4, 40)
MUST_HAVE_HAPPENED = {
    *("lost before", "lost between", "lost after commit", "serialization", "statement timeout", "lock timeout"),
    *("too late", "said again", "recovered", "leases that nobody heard of", "retried", "taken away", "suspend a case", "cancel a case"),
    *("claim a task", "no claim", "complete a task", "no complete"),
}
BATCHES = 10  # of examples, until a broken guard must have been met by chance


def run(databases: Databases, *, examples: int, shrinks: bool) -> None:
    House.databases = databases
    House.met.clear()
    phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)
    checks = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        phases=phases,
        suppress_health_check=checks,
        deadline=None,
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(House, settings=chosen)


def test_R4_R6_R10_whatever_happens_in_whatever_order_every_step_counts_once_and_everything_ends(
    databases: Databases, record_property: Callable[[str, object], None]
) -> None:
    run(databases, examples=EXAMPLES, shrinks=EXPLORES)
    record_property("what happened, by chance", dict(House.met))


@pytest.mark.parametrize("script", scripts.SHOWS, ids=lambda script: script.__name__)
def test_R4_R6_R10_what_must_have_happened_is_written_down_and_every_step_counts_once(databases: Databases, script: scripts.Script) -> None:
    scripts.play(databases, script)


def test_whatever_must_have_happened_is_shown_by_a_script() -> None:
    assert not (never := MUST_HAVE_HAPPENED - frozenset().union(*scripts.SHOWS.values())), never


# ---- a guard that is gone is noticed


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """A failure is taken from whoever once had a lease."""
    fence = " AND l.lease_number = %(lease_number)s"
    assert all(fence in text for text in failure._FAIL.values())
    patch.setattr(failure, "_FAIL", {table: text.replace(fence, "") for table, text in failure._FAIL.items()})


def nothing_expires(patch: pytest.MonkeyPatch) -> None:
    """A recovery takes leases that have not run out."""
    expired = "j.lease_expires_at < baton_now()"
    assert all(expired in text for text in acquire._RECOVER.values())
    patch.setattr(acquire, "_RECOVER", {table: text.replace(expired, "true") for table, text in acquire._RECOVER.items()})


def no_request(patch: pytest.MonkeyPatch) -> None:
    """A start forgets under which request it was asked for."""
    patch.setattr(start, "request_for", lambda *given: None)


def no_memory(patch: pytest.MonkeyPatch) -> None:
    """Whoever asks again whether a report landed is told that the lease is lost."""
    patch.setattr(jobs, "ended_before", lambda *given: None)


TRIPPED_BY: dict[Callable[[pytest.MonkeyPatch], None], scripts.Script] = {
    no_fence: scripts.a_worker_that_is_too_late_says_that_it_failed,
    nothing_expires: scripts.a_lease_that_has_not_run_out_is_left_alone,
    no_request: scripts.a_start_whose_answer_was_lost_is_asked_again,
    no_memory: scripts.a_report_whose_answer_was_lost_is_said_again,
}


@pytest.mark.parametrize("broken", TRIPPED_BY)
def test_a_guard_that_is_gone_is_noticed(
    broken: Callable[[pytest.MonkeyPatch], None], databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a script that passes while the guard is there; and, where there is time for it, by what is drawn."""
    scripts.play(databases, TRIPPED_BY[broken])
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        scripts.play(databases, TRIPPED_BY[broken])
    if EXPLORES:
        with pytest.raises((AssertionError, Flaky)):
            for _ in range(BATCHES):
                run(databases, examples=60, shrinks=False)
