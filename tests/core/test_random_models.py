"""Random block-structured models, driven to the end in random order: never stuck, nothing left, no row named twice.

Blocks: task, job, script, receive task, signals, sequence, parallel, exclusive, inclusive, link, error end, loop,
subprocess, event subprocesses, calls, escalation, several, terminate, event gateway, boundary events of both kinds, conditions.
`World` checks after every step that each token waits for something, and that a narrow snapshot decides as the whole does.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from engine.bpmn.definition import Node, ProcessDefinition
from engine.core import loops
from tests.core.models import (
    ad_hoc,
    anyof,
    boundary,
    by_event,
    call,
    catch,
    complexly,
    end,
    error_end,
    escalation_end,
    first_event,
    inc,
    link,
    looped,
    model,
    on_event,
    par,
    receive,
    script,
    service,
    several,
    signals,
    start,
    sub,
    tells,
    terminate,
    throw,
    user,
    xor,
)
from tests.core.world import World

Block = tuple[str, list["Block"]] | str

WORK = ("task", "job", "external", "script", "receive", "linked")
EVENTS = ("choice_of_events", "interrupted", "reminded", "overtaken", "noticed", "true_or_late", "either", "both", "stopped_by_both")
SCOPES = ("subprocess", "interrupted_subprocess", "terminated", "failing", "watched")
LOOPS = ("loop", "several", "in_turn", "again", "any_order", "one_by_one")
CALLS = ("called", "called_in_time", "called_in_vain", "each_called")
THROWS = ("signal", "wait_for_signal", "wait_or_signal", "told")
LEAVES = st.sampled_from([*WORK, *EVENTS, *THROWS])
BLOCKS: st.SearchStrategy[Block] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["sequence", "parallel", "exclusive", "inclusive", "racing"]), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(
            st.sampled_from([*SCOPES, *LOOPS, *CALLS]),
            st.lists(inner, min_size=1, max_size=1),
        ),
    ),
    max_leaves=7,
)


@dataclass
class Drawing:
    """A model being drawn: blocks become elements and flows, each block with one way in and one way out."""

    chains: list[str] = field(default_factory=list)
    elements: dict[str, Node] = field(default_factory=dict)
    conditions: dict[str, str] = field(default_factory=dict)
    defaults: list[str] = field(default_factory=list)
    members: dict[str | None, list[str]] = field(default_factory=dict)
    library: dict[str, ProcessDefinition] = field(default_factory=dict)  # what is called
    prefix: str = ""

    def add(self, node: Node, owner: str | None) -> str:
        name = f"{node.kind[:4]}{self.prefix}{len(self.elements)}"
        self.elements[name] = node
        self.members.setdefault(owner, []).append(name)
        return name

    def link(self, source: str, target: str, *, when: str | None = None, otherwise: bool = False) -> None:
        self.chains.append(f"{source} -> {target}")
        if when:
            self.conditions[f"{source}>{target}"] = when
        if otherwise:
            self.defaults.append(f"{source}>{target}")

    def draw(self, block: Block, owner: str | None) -> tuple[str, str]:
        """The first and the last element of a block."""
        name, inner = (block, []) if isinstance(block, str) else block
        first, last = getattr(self, f"_{name}")(inner, owner)
        return first, last

    def model(self, block: Block, finishing: Node | None = None) -> ProcessDefinition:
        begin, finish = self.add(start(), None), self.add(finishing or end(), None)
        first, last = self.draw(block, None)
        self.link(begin, first)
        self.link(last, finish)
        inside = {owner: " ".join(names) for owner, names in self.members.items() if owner is not None}
        return model(*self.chains, inside=inside, conditions=self.conditions, defaults=tuple(self.defaults), **self.elements)

    # ---- blocks

    def _single(self, node: Node, owner: str | None) -> tuple[str, str]:
        name = self.add(node, owner)
        return name, name

    def _task(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(user(), owner)

    def _job(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(service(), owner)

    def _external(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(service(work="external"), owner)

    def _script(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(script("${pick + done}", "sum"), owner)

    def _receive(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(receive("ANSWER"), owner)

    def _linked(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        name = f"L{len(self.elements)}"
        return self.add(throw(link=name), owner), self.add(link(name), owner)

    def _signal(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(signals("NEWS"), owner)

    def _wait_for_signal(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(catch(signal="NEWS"), owner)

    def _wait_or_signal(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        """One branch throws what the other waits for behind a gateway, and a task is told of it besides."""
        fork, join, gateway = self.add(par(), owner), self.add(par(), owner), self.add(first_event(), owner)
        task, throws, merge = self.add(user(), owner), self.add(signals("NEWS"), owner), self.add(xor(), owner)
        told = self.add(boundary(task, signal="NEWS", interrupting=False), owner)
        self.link(told, self.add(end(), owner))
        self.link(fork, gateway)
        for waits in (catch(signal="NEWS"), catch(signal="OTHER"), catch(after="PT1H")):
            name = self.add(waits, owner)
            self.link(gateway, name)
            self.link(name, merge)
        self.link(merge, join)
        self.link(fork, task)
        self.link(task, throws)
        self.link(throws, join)
        return fork, join

    def _told(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(tells("ANSWER"), owner)

    def _inclusive(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        split, merge = self.add(inc(), owner), self.add(inc(), owner)
        for number, block in enumerate(inner):
            first, last = self.draw(block, owner)
            self.link(split, first, when=f"${{pick != {number}}}")
            self.link(last, merge)
        self.link(split, merge, otherwise=True)
        return split, merge

    def _racing(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        """The first branch that is done goes on; the others are taken in when they come."""
        fork, race = self.add(complexly(), owner), self.add(complexly("${activationCount >= 1}"), owner)
        for block in inner:
            first, last = self.draw(block, owner)
            self.link(fork, first)
            self.link(last, race)
        return fork, race

    def _ad_hoc(self, inner: list[Block], owner: str | None, node: Node) -> tuple[str, str]:
        name = self.add(node, owner)
        task, _ = self.add(user(), name), self.add(service(), name)
        first, last = self.draw(inner[0], name)
        self.link(task, first)
        self.link(last, self.add(script("${done}", "sum"), name))  # a block may end in a gateway, which needs a way out
        return self._with_way_around(name, owner)

    def _any_order(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        return self._ad_hoc(inner, owner, ad_hoc(until="${done % 3 == 0}", cancel_remaining=False))

    def _one_by_one(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        return self._ad_hoc(inner, owner, ad_hoc(until="${done % 5 == 0}", sequential=True))

    def _failing(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        """A subprocess that also has a way to an error, which its boundary event catches."""
        name, _ = self._subprocess(inner, owner)
        begin = next(each for each in self.members[name] if self.elements[each].kind == "start_event")
        task, broken = self.add(user(), name), self.add(error_end("BROKEN"), name)
        self.link(begin, task)
        self.link(task, broken)
        caught, merge = self.add(boundary(name, error="*"), owner), self.add(xor(), owner)
        self.link(name, merge)
        self.link(caught, merge)
        return name, merge

    def _watched(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        """A subprocess with event subprocesses of every kind, and ways inside it to the error and the escalation."""
        name, _ = self._subprocess(inner, owner)
        begin = next(each for each in self.members[name] if self.elements[each].kind == "start_event")
        task, way, broken, loud = (
            self.add(user(), name),
            self.add(xor(), name),
            self.add(error_end("BROKEN"), name),
            self.add(escalation_end("LOUD"), name),
        )
        self.link(begin, task)
        self.link(task, way)
        self.link(way, broken, when="${pick == 1}")
        self.link(way, loud, otherwise=True)
        events = [
            on_event(on="NEWS"),
            on_event(after="R2/PT1H", interrupting=False),
            on_event(signal="NEWS", interrupting=False),
            on_event(error="*"),
            on_event(escalation="LOUD", interrupting=False),
            on_event(when="${pick == 2}", interrupting=False),
        ]
        for begins in events:
            handler = self.add(by_event(), name)
            first, work, last = self.add(begins, handler), self.add(service(), handler), self.add(end(), handler)
            self.link(first, work)
            self.link(work, last)
        return name, name

    def _looped(self, inner: list[Block], owner: str | None, make: Any) -> tuple[str, str]:
        name, _ = self._subprocess(inner, owner)
        self.elements[name] = make(self.elements[name])
        return self._with_way_around(name, owner)

    def _several(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        return self._looped(inner, owner, lambda node: several(node, times="${pick}", until="${done % 3 == 0}"))

    def _in_turn(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        return self._looped(inner, owner, lambda node: several(node, times="2", sequential=True))

    def _again(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        return self._looped(inner, owner, lambda node: looped(node, "${pick == 1}", maximum=3))

    def _sequence(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        drawn = [self.draw(block, owner) for block in inner]
        for (_, last), (first, _) in itertools.pairwise(drawn):
            self.link(last, first)
        return drawn[0][0], drawn[-1][1]

    def _parallel(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        fork, join = self.add(par(), owner), self.add(par(), owner)
        for block in inner:
            first, last = self.draw(block, owner)
            self.link(fork, first)
            self.link(last, join)
        self.link(fork, join)  # one branch without anything in it
        return fork, join

    def _exclusive(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        split, merge = self.add(xor(), owner), self.add(xor(), owner)
        for number, block in enumerate(inner):
            first, last = self.draw(block, owner)
            self.link(split, first, when=f"${{pick == {number}}}")
            self.link(last, merge)
        self.link(split, merge, otherwise=True)
        return split, merge

    def _loop(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        merge, again, task = self.add(xor(), owner), self.add(xor(), owner), self.add(user(), owner)
        first, last = self.draw(inner[0], owner)
        self.link(merge, task)
        self.link(task, first)
        self.link(last, again)
        out = self.add(xor(), owner)
        self.link(again, merge, when="${done < 12}")
        self.link(again, out, otherwise=True)
        return merge, out

    def _subprocess(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        name = self.add(sub({"pick": "${pick}"}), owner)
        begin, finish = self.add(start(), name), self.add(end(), name)
        first, last = self.draw(inner[0], name)
        self.link(begin, first)
        self.link(last, finish)
        return name, name

    def _interrupted_subprocess(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        name, _ = self._subprocess(inner, owner)
        return self._with_way_around(name, owner)

    def _called(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        """A process of its own, drawn beside."""
        return self._single(self._call_of(inner[0], end()), owner)

    def _called_in_time(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        return self._with_way_around(self.add(self._call_of(inner[0], end()), owner), owner)

    def _each_called(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(several(self._call_of(inner[0], end()), times="${2}"), owner)

    def _called_in_vain(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        """It ends in an error, which its caller catches."""
        name, merge = self.add(self._call_of(inner[0], error_end("E")), owner), self.add(xor(), owner)
        caught = self.add(boundary(name, error="E"), owner)
        self.link(name, merge)
        self.link(caught, merge)
        return name, merge

    def _call_of(self, block: Block, last: Node) -> Node:
        key = f"called{len(self.library)}"
        self.library[key] = model("start -> end")  # taken, while what it is is drawn
        beside = Drawing(library=self.library, prefix=f"{key[6:]}x")
        self.library[key] = beside.model(block, last)
        return call(key, inputs={"pick": "pick", "done": "done"}, results={"done": "done"})

    def _interrupted(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._with_way_around(self.add(user(), owner), owner)

    def _with_way_around(self, activity: str, owner: str | None) -> tuple[str, str]:
        late, merge = self.add(boundary(activity, after="PT1H"), owner), self.add(xor(), owner)
        self.link(activity, merge)
        self.link(late, merge)
        return activity, merge

    def _reminded(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        task = self.add(user(), owner)
        nag = self.add(boundary(task, after="R2/PT1H", interrupting=False), owner)
        self.link(nag, self.add(user(), owner))
        return task, task

    def _overtaken(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        """A task that a condition may interrupt: at once, by what others set, or never."""
        task, merge = self.add(user(), owner), self.add(xor(), owner)
        rich = self.add(boundary(task, when="${done % 4 == 3}"), owner)
        self.link(task, merge)
        self.link(rich, merge)
        return task, merge

    def _noticed(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        task = self.add(user(), owner)
        seen = self.add(boundary(task, when="${done % 2 == 1}", interrupting=False), owner)
        self.link(seen, self.add(script("${done + pick}", "sum"), owner))
        return task, task

    def _true_or_late(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        gateway, merge = self.add(first_event(), owner), self.add(xor(), owner)
        for node in (catch(when="${pick == 1 and sum > 3}"), catch(after="PT1H")):
            name = self.add(node, owner)
            self.link(gateway, name)
            self.link(name, merge)
        return gateway, merge

    def _either(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(anyof(catch(on="ANSWER"), catch(after="PT1H"), catch(when="${pick == 1}")), owner)

    def _both(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        return self._single(anyof(catch(on="ANSWER"), catch(after="PT1H"), parallel=True), owner)

    def _stopped_by_both(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        task, merge = self.add(user(), owner), self.add(xor(), owner)
        parts = [boundary(task, on="STOP"), boundary(task, after="PT1H"), boundary(task, when="${pick > 0}")]
        stop = self.add(anyof(*parts, parallel=True), owner)
        self.link(task, merge)
        self.link(stop, merge)
        return task, merge

    def _terminated(self, inner: list[Block], owner: str | None) -> tuple[str, str]:
        name, _ = self._subprocess(inner, owner)
        begin = next(each for each in self.members[name] if self.elements[each].kind == "start_event")
        task, stop = self.add(user(), name), self.add(Node("", "end_event", config=terminate().config), name)
        self.link(begin, task)
        self.link(task, stop)
        return name, name

    def _choice_of_events(self, _: list[Block], owner: str | None) -> tuple[str, str]:
        gateway, merge = self.add(first_event(), owner), self.add(xor(), owner)
        for node in (catch(on="PAID"), catch(after="PT1H")):
            name = self.add(node, owner)
            self.link(gateway, name)
            self.link(name, merge)
        return gateway, merge


def started(block: Block, choose: Random) -> World:
    drawing = Drawing()
    definition = drawing.model(block)
    (begin,) = definition.starts[None]
    return World(definition, library=drawing.library).start(begin, pick=choose.randrange(3), done=0)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(block=BLOCKS, seed=st.integers(0, 10_000), batch=st.sampled_from([1, loops.BATCH]))
def test_every_model_of_blocks_runs_to_its_end(block: Block, seed: int, batch: int) -> None:
    """With a batch of one, each instance of an activity begins in a step of its own."""
    with patch.object(loops, "BATCH", batch):
        runs_to_its_end(block, seed)


def runs_to_its_end(block: Block, seed: int) -> None:
    choose = Random(seed)
    run = started(block, choose)
    for step in range(400):
        if run.ended:
            event(f"ended after {step // 10 * 10} steps or more")
            break
        leaf = choose.choice(list(run.leaves.values()))
        run.serve(leaf, {"pick": choose.randrange(3), "done": step})
    assert run.ended == "completed"
    assert run.happened.count("instance_completed") == 1 + sum(each.status == "completed" for each in run.called.values())
    entered = run.happened.count
    for name, node in [element for each in (run.definition, *run.library.values()) for element in each.nodes.items()]:
        assert entered(f"element_entered {name}") == entered(f"element_left {name}"), f"{name} ({node.kind}) was entered and not left"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(block=BLOCKS, seed=st.integers(0, 10_000), steps=st.integers(0, 12), batch=st.sampled_from([1, loops.BATCH]))
def test_every_model_of_blocks_can_be_cancelled_at_any_time(block: Block, seed: int, steps: int, batch: int) -> None:
    with patch.object(loops, "BATCH", batch):
        can_be_cancelled(block, seed, steps)


def can_be_cancelled(block: Block, seed: int, steps: int) -> None:
    choose = Random(seed)
    run = started(block, choose)
    for step in range(steps):
        if not run.ended:
            run.serve(choose.choice(list(run.leaves.values())), {"pick": choose.randrange(3), "done": step})
    if run.ended:
        return
    open_tasks = run.tasks
    run.cancel()
    assert run.ended == "cancelled"
    assert sorted(each.split()[1] for each in run.new("task_cancelled")) == open_tasks
