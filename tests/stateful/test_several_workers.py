"""Whatever several workers, two people, an operator and a bad network do in whatever order: every step is judged, and all ends well.

BATON_EXPLORE=1 makes other runs, and more of them. What broke a guard must be found, or the machine proves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from engine.commands import failure, jobs, start
from engine.db import acquire
from tests.databases import Databases
from tests.stateful.rules import House

EXAMPLES, STEPS = 150 if "BATON_EXPLORE" in os.environ else 12, 60
MUST_HAVE_HAPPENED = {
    *("lost before", "lost between", "lost after commit", "serialization", "statement timeout", "lock timeout"),
    *("too late", "said again", "recovered", "leases that nobody heard of", "retried", "taken away", "suspend a case", "cancel a case"),
    *("claim a task", "no claim", "complete a task", "no complete"),
}


def run(databases: Databases, *, examples: int, shrinks: bool) -> None:
    House.databases = databases
    House.met.clear()
    phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)
    checks = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
    chosen = settings(max_examples=examples, stateful_step_count=STEPS, phases=phases, suppress_health_check=checks, deadline=None)
    run_state_machine_as_test(House, settings=chosen)


def test_R4_R6_R10_whatever_happens_in_whatever_order_every_step_counts_once_and_everything_ends(databases: Databases) -> None:
    run(databases, examples=EXAMPLES, shrinks="BATON_EXPLORE" in os.environ)
    assert not (never := MUST_HAVE_HAPPENED - {what for what, times in House.met.items() if times}), (never, House.met)


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


@pytest.mark.parametrize("broken", [no_fence, nothing_expires, no_request, no_memory])
def test_a_guard_that_is_gone_is_noticed(
    broken: Callable[[pytest.MonkeyPatch], Any], databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    with pytest.raises((AssertionError, Flaky)):
        run(databases, examples=60, shrinks=False)
