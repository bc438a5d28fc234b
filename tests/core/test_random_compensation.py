"""Random models whose tasks can all be compensated: each completed execution is undone once, whatever ran beside it, in whichever order.

`World` checks after every step that no execution lies nowhere, that none is named twice, and that a narrow snapshot decides as
the whole does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.bpmn.definition import ProcessDefinition
from engine.core import loops
from tests.core.models import boundary, cancel_end, end, model, par, script, several, start, transaction, undo, user
from tests.core.test_random_models import Block, Drawing
from tests.core.world import World

IN_ORDER = ["sequence", "exclusive", "subprocess", "in_turn", "again", "loop"]
BESIDE = ["parallel", "inclusive", "each"]


def blocks(kinds: list[str]) -> st.SearchStrategy[Block]:
    """Nothing in them is interrupted: what completes stays so."""
    return st.recursive(
        st.sampled_from(["task", "job", "script", "receive"]),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from([kind for kind in kinds if kind in ("sequence", "exclusive", "parallel", "inclusive")]),
                      st.lists(inner, min_size=2, max_size=3)),
            st.tuples(st.sampled_from([kind for kind in kinds if kind in ("subprocess", "in_turn", "again", "loop", "each")]),
                      st.lists(inner, min_size=1, max_size=1)),
        ),
        max_leaves=7,
    )  # fmt: skip


@dataclass
class Undoing(Drawing):
    """A drawing in which tasks and jobs have handlers, every other one a script, so some are undone without waiting."""

    handlers: dict[str, str] = field(default_factory=dict)

    def _task(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        return self._with_handler(super()._task(inner, owner))

    def _job(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        return self._with_handler(super()._job(inner, owner))

    def _each(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        name, _ = self._subprocess(inner, owner)
        self.elements[name] = several(self.elements[name], times="2")
        return name, name

    def _in_turn(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        name, _ = self._subprocess(inner, owner)
        self.elements[name] = several(self.elements[name], times="2", sequential=True)
        return name, name

    def _again(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        return self._in_turn(inner, owner)

    def _with_handler(self, drawn: tuple[str, str]) -> tuple[str, str]:
        name, _ = drawn
        self.handlers[name] = f"h_{name}"
        if len(self.handlers) % 2:
            self.elements[f"h_{name}"] = script("${pick + 1}", "undone")
        return drawn

    def compensated(self, block: Block) -> ProcessDefinition:
        """start -> the block -> an event that compensates all -> end."""
        begin, finish, regret = self.add(start(), None), self.add(end(), None), self.add(undo(), None)
        first, last = self.draw(block, None)
        self.link(begin, first)
        self.link(last, regret)
        self.link(regret, finish)
        return self._made()

    def cancelled(self, block: Block) -> ProcessDefinition:
        """A transaction with the block, and beside it a task that cancels it."""
        begin, finish, trade = self.add(start(), None), self.add(end(), None), self.add(transaction(), None)
        gone = self.add(boundary(trade, cancel=True), None)
        inside = begin_in, fork, stopper, stop, done = [self.add(each, trade) for each in (start(), par(), user(), cancel_end(), end())]
        first, last = self.draw(block, trade)
        self.link(begin, trade)
        self.link(trade, finish)
        self.link(gone, finish)
        self.link(begin_in, fork)
        self.link(fork, stopper)
        self.link(stopper, stop)
        self.link(fork, first)
        self.link(last, done)
        assert len(inside) == 5
        self.stopper = stopper
        return self._made()

    def _made(self) -> ProcessDefinition:
        inside = {owner: " ".join(names) for owner, names in self.members.items() if owner is not None}
        return model(
            *self.chains, inside=inside, conditions=self.conditions, defaults=tuple(self.defaults), handlers=self.handlers, **self.elements
        )


def run_to_the_end(run: World, choose: Random) -> World:
    for step in range(600):
        if run.ended:
            return run
        run.serve(choose.choice(list(run.leaves.values())), {"pick": choose.randrange(3), "done": step})
    raise AssertionError(f"not at its end after 600 steps: {run.open}")


def completed(run: World, drawing: Undoing) -> list[str]:
    """The tasks with handlers in the order in which they completed."""
    left = [event for event in run.events if event.kind == "element_left" and event.element_id in drawing.handlers]
    return [event.element_id for event in left if not event.data.get("cancelled")]


def undone(run: World, drawing: Undoing) -> list[str]:
    return [event.element_id for event in run.events if event.kind == "compensation_begun" and event.element_id in drawing.handlers]


def balanced(run: World) -> None:
    """Whatever begins to be undone is done with, and whatever is entered is left."""
    count = run.happened.count
    for name, node in run.definition.nodes.items():
        assert count(f"compensation_begun {name}") == count(f"compensation_done {name}"), name
        assert count(f"element_entered {name}") == count(f"element_left {name}"), f"{name} ({node.kind}) was entered and not left"


SETTINGS = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(block=blocks(IN_ORDER), seed=st.integers(0, 10_000))
def test_what_ran_one_after_the_other_is_undone_in_exactly_the_reverse_order(block: Block, seed: int) -> None:
    choose, drawing = Random(seed), Undoing()
    run = World(drawing.compensated(block)).start(next(iter(drawing.elements)), pick=choose.randrange(3), done=0)
    run_to_the_end(run, choose)
    assert undone(run, drawing) == list(reversed(completed(run, drawing)))
    balanced(run)


@SETTINGS
@given(block=blocks(IN_ORDER + BESIDE), seed=st.integers(0, 10_000))
def test_each_completed_execution_is_undone_exactly_once(block: Block, seed: int) -> None:
    choose, drawing = Random(seed), Undoing()
    run = World(drawing.compensated(block)).start(next(iter(drawing.elements)), pick=choose.randrange(3), done=0)
    run_to_the_end(run, choose)
    assert run.ended == "completed"
    assert Counter(undone(run, drawing)) == Counter(completed(run, drawing))
    balanced(run)


@SETTINGS
@given(block=blocks(IN_ORDER + BESIDE), seed=st.integers(0, 10_000), steps=st.integers(0, 15), batch=st.sampled_from([1, loops.BATCH]))
def test_a_transaction_cancelled_at_any_time_is_undone_exactly_as_far_as_it_came(block: Block, seed: int, steps: int, batch: int) -> None:
    """With a batch of one, jobs that begin further instances are there when it is cancelled, and when it is undone."""
    with patch.object(loops, "BATCH", batch):
        undone_as_far_as_it_came(block, seed, steps)


def undone_as_far_as_it_came(block: Block, seed: int, steps: int) -> None:
    choose, drawing = Random(seed), Undoing()
    run = World(drawing.cancelled(block)).start(next(iter(drawing.elements)), pick=choose.randrange(3), done=0)
    for step in range(steps):
        others = [leaf for leaf in run.leaves.values() if leaf.element_id != drawing.stopper]
        if others:
            run.serve(choose.choice(others), {"pick": choose.randrange(3), "done": step})
    run.complete(drawing.stopper)
    so_far = completed(run, drawing)
    run_to_the_end(run, choose)
    assert run.ended == "completed"
    assert Counter(undone(run, drawing)) == Counter(so_far)
    balanced(run)


@SETTINGS
@given(block=blocks(IN_ORDER + BESIDE), seed=st.integers(0, 10_000), steps=st.integers(0, 25))
def test_an_instance_cancelled_at_any_time_leaves_nothing(block: Block, seed: int, steps: int) -> None:
    choose, drawing = Random(seed), Undoing()
    run = World(drawing.compensated(block)).start(next(iter(drawing.elements)), pick=choose.randrange(3), done=0)
    for step in range(steps):
        if run.leaves:
            run.serve(choose.choice(list(run.leaves.values())), {"pick": choose.randrange(3), "done": step})
    if not run.ended:
        assert run.cancel().ended == "cancelled"
