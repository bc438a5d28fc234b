"""The model of durable work: the engine's rules keep every claim, any other set of rules breaks one, and the model is of this engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.core import lifecycle
from tests.lease_model import rest
from tests.lease_model.claims import CLAIMS
from tests.lease_model.explore import LIVENESS, Explored, explore
from tests.lease_model.moves import moves
from tests.lease_model.rules import BROKEN, ENGINE, Rules
from tests.lease_model.state import AT_REST, FINAL, Row, State, Worker, first, renumbered

ACTIONS = (
    "acquire start renew release effect complete fail ask expire recover retry cancel shutdown kill late lost land vanish",
    "take away",
    "lose complete",
    "lose fail",
    "lose release",
)


@pytest.fixture(scope="module")
def engine() -> Explored:
    return explore(ENGINE)


def test_R4_R5_the_rules_of_the_engine_keep_every_claim_in_every_state(engine: Explored):
    assert engine.broken is None
    assert engine.states > 20_000
    assert engine.moves > 200_000


def test_every_move_of_the_life_cycle_was_made(engine: Explored):
    assert engine.actions == {*ACTIONS[0].split(), *ACTIONS[1:]}


def test_the_model_moves_between_statuses_exactly_as_the_map_of_the_engine_allows(engine: Explored):
    allowed = {(before, after) for before, following in lifecycle.WORK.items() for after in following}
    assert engine.changes == allowed
    assert lifecycle.final(lifecycle.WORK) == FINAL


def test_deliveries_live_the_same_life_but_for_being_skipped():
    unskipped = {status: following - {"skipped"} for status, following in lifecycle.DELIVERY.items() if status != "skipped"}
    assert unskipped == dict(lifecycle.WORK)


@pytest.mark.parametrize("rules", BROKEN, ids=[rules.name for rules in BROKEN])
def test_other_rules_break_the_claim_that_they_should(rules: Rules):
    broken = explore(rules).broken
    assert broken is not None
    assert broken.claim == rules.breaks
    assert len(broken.steps) >= 3


@pytest.mark.parametrize("workers", sorted({rules.workers for rules in BROKEN}))
def test_it_is_the_one_rule_that_breaks_it(workers: int):
    others = {replace(rules, name="", says="", breaks="", people=True, workers=2) for rules in BROKEN}
    assert len(others) == len(BROKEN)
    assert explore(replace(ENGINE, people=False, workers=workers)).broken is None


def test_F4_a_recovery_that_reads_first_may_write_over_a_completed_item():
    reads = next(rules for rules in BROKEN if not rules.recovery_in_one_statement)
    read = Row("leased", 0, 1, 2, expired=True)
    done = State(Row("completed", 0, 1), (Worker(),), read=read)
    assert [move.after.row.status for move in moves(done, reads) if move.action == "write"] == ["available"]


def test_the_counterexample_of_attempts_as_the_fence_gives_one_back():
    attempts = next(rules for rules in BROKEN if rules.fence == "attempts")
    broken = explore(attempts).broken
    assert broken is not None
    assert sum("attempt 1 of 2" in step for step in broken.steps) == 2


def test_the_livelock_of_a_poison_item_is_a_round_with_a_recovery_in_it():
    gives_back = next(rules for rules in BROKEN if rules.recovery_gives_the_attempt_back)
    broken = explore(gives_back).broken
    assert broken is not None
    assert broken.claim == LIVENESS
    assert any("recovery takes lease" in step for step in broken.steps[-broken.again :])


def test_the_standstill_of_an_item_without_attempts_repeats_nothing():
    forgets = next(rules for rules in BROKEN if not rules.recovery_knows_the_last_attempt)
    broken = explore(forgets).broken
    assert broken is not None
    assert (broken.claim, broken.again) == (LIVENESS, 0)


def test_only_which_lease_is_newer_matters():
    state = first(2)
    state = state._replace(row=Row("leased", 7, 1), workers=(Worker("started", 3, 1), Worker("acquired", 7, 1)))
    state = state._replace(ledger=state.ledger._replace(ends=(1, 1, 1, 1, 1, 1, 1, 0)))
    same = renumbered(state)
    assert (same.row.number, [worker.number for worker in same.workers], same.ledger.ends) == (1, [0, 1], (1, 0))
    assert renumbered(same) == same


def _edge(to: int, fair: str = "") -> rest.Edge:
    return rest.Edge(to, "move", "", fair, seldom=False)


def test_a_round_in_which_a_fair_move_is_possible_throughout_and_never_made_is_not_fair():
    waiting, at_rest = first(1), State(Row("completed"), (Worker(),))
    assert at_rest.row.status in AT_REST
    states = [waiting, waiting, at_rest]
    assert rest.restless(states, [[_edge(1), _edge(2, "exit")], [_edge(0), _edge(2, "exit")], []]) is None
    shut_at_times = rest.restless(states, [[_edge(1), _edge(2, "exit")], [_edge(0)], []])
    assert shut_at_times is not None
    assert shut_at_times.round


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_can_fail(claim: str):
    fine = first(1)
    ledger = fine.ledger
    wrong = {
        "no report counts under a number that is not the row's": fine._replace(ledger=ledger._replace(stale=True)),
        "what is completed or cancelled stays so": fine._replace(ledger=ledger._replace(end="completed")),
        "an item is completed once": fine._replace(ledger=ledger._replace(completions=2)),
        "a lease ends once, and then it is not held": fine._replace(row=Row("leased")),
        "what is completed had its effect at least once": fine._replace(ledger=ledger._replace(completions=1)),
        "no handler starts under a lease that has expired": fine._replace(ledger=ledger._replace(late_start=True)),
        "attempts stay between none and all": fine._replace(row=Row(attempts=3)),
        "only a lease expires": fine._replace(row=Row(expired=True)),
    }
    assert CLAIMS[claim](fine)
    assert not CLAIMS[claim](wrong[claim])
