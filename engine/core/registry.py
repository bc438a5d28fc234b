"""Which behaviour runs which kind of node. One file per kind in `engine.core.elements`; a new kind is a new file.

A behaviour holds no state: everything it knows comes with the call, everything it does goes through the `Run`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.bpmn.definition import Node, waits_in_a_row
from engine.core.effects import InvariantBroken
from engine.core.snapshot import Completed, Continued, EventOccurred

if TYPE_CHECKING:
    from engine.core.run import Run
    from engine.core.state import Scope, Token


class Behaviour:
    """What a kind of node does when a token arrives, when its work ends, and when its event occurs."""

    announced = True  # element_entered is written when a token arrives (a join writes it when it passes)
    holds_scope = False  # a token resting here owns an inner scope
    holds_task = False  # a token resting here has a user task
    is_activity = False  # a task, a subprocess or a call
    only_waits = False  # a token comes here to wait for an event of others
    listens = False  # a token is made here, by no flow, to wait for an event

    def enter(self, run: Run, token: Token, node: Node) -> None:
        """A token arrived. Either give it a leaf to wait for (`token.wait_for`), or send it on (`run.leave`)."""
        raise NotImplementedError(f"{type(self).__name__} does not say what happens when a token enters")

    def start_at(self, run: Run, scope: Scope, node: Node) -> None:
        """A scope begins with a token here."""
        run.enter(run.spawn(scope, node.id), node)

    def completed(self, run: Run, token: Token, node: Node, trigger: Completed) -> None:
        """The work that the token waited for ended well."""
        raise InvariantBroken(f"element {node.id} ({node.kind}): nothing completes here, found {trigger.event}")

    def occurred(self, run: Run, token: Token, node: Node, trigger: EventOccurred) -> None:
        """The event `node` occurred for a token that waits at it, or at the activity or gateway that it belongs to."""
        raise InvariantBroken(f"element {node.id} ({node.kind}): no event occurs here, found {trigger.what}")

    def came_true(self, run: Run, token: Token, node: Node) -> None:
        """The condition of the event `node` has become true: it occurs, unless its token has gone on meanwhile."""
        if token.alive and token.watches(node.id):
            run.steps += 1
            detail = {"condition": node.config.condition.expression.text}
            self.occurred(run, token, node, EventOccurred(token.id, node.id, "condition", detail=detail))

    def scope_emptied(self, run: Run, owner: Token, node: Node) -> None:
        """The inner scope of `owner` has no token left."""
        raise InvariantBroken(f"element {node.id} ({node.kind}): owns no scope, but one ended")

    def withdrawn(self, run: Run, token: Token, node: Node) -> None:
        """A token that waits here is cancelled: say so in the history."""
        run.record(token.scope, "element_left", node.id, {"cancelled": True})

    def returned(self, run: Run, owner: Token, node: Node, scope: Scope) -> None:
        """The instance that `owner` called is complete; `scope` was its process scope."""
        raise InvariantBroken(f"element {node.id} ({node.kind}): calls nothing, but an instance returned to it")

    def leaves_left(self, node: Node, nodes: Mapping[str, Node]) -> bool:
        """Whether a resting token may still have rows hanging off it when its work has ended: armed boundary events.

        Not asked of one that remembers something: it leaves its row behind in any case.
        """
        return bool(node.attached) and any(waits_in_a_row(nodes[event].config) for event in node.attached)

    def continued(self, run: Run, token: Token, node: Node, trigger: Continued) -> None:
        """What one step could not begin goes on."""
        raise InvariantBroken(f"element {node.id} ({node.kind}): nothing goes on here in steps")

    def inner_left(self, run: Run, owner: Token, token: Token) -> bool:
        """`token`, in the scope that `owner` holds here, is about to leave its element. Whether it was told to go nowhere."""
        return False

    def goes_on(self, run: Run, scope: Scope) -> bool:
        """Whether more is to begin in a scope that a token holds here, although nothing is left in it."""
        return False

    def leave_iteration(self, run: Run, token: Token, node: Node) -> None:
        """An iteration of a looped activity is done."""
        raise InvariantBroken(f"element {node.id} ({node.kind}): is not looped, but an iteration ended")


BEHAVIOURS: dict[str, Behaviour] = {}
COMPENSATING = "what is being compensated"  # the behaviour of tokens in a compensating scope
LOOP = "a looped activity"  # the behaviour of its own token, beside those of the kinds


def register(kind: str, behaviour: Behaviour) -> None:
    """Let `behaviour` run the nodes of `kind`. Raises ValueError if another one does already."""
    if kind in BEHAVIOURS:
        raise ValueError(f"kind {kind}: already run by {type(BEHAVIOURS[kind]).__name__}")
    BEHAVIOURS[kind] = behaviour


@contextmanager
def registered(kind: str, behaviour: Behaviour) -> Iterator[None]:
    """`behaviour` runs the nodes of `kind` while the block runs."""
    register(kind, behaviour)
    try:
        yield
    finally:
        del BEHAVIOURS[kind]


def behaviour_at(token: Token, node: Node) -> Behaviour:
    """The behaviour of a token at a node: a looped activity's own token has it looped, those of its iterations do the work.

    One in a compensating scope stands for what is being undone there.
    """
    if token.scope.counters:
        if token.scope.is_compensating:
            return BEHAVIOURS[COMPENSATING]
        if token.scope.is_iteration:
            return behaviour_of(node)
    return behaviour_of(node) if node.loop is None else BEHAVIOURS[LOOP]


def behaviour_of(node: Node) -> Behaviour:
    """The behaviour of a node. The reader lets no unknown kind through, so a missing one is a bug."""
    behaviour = BEHAVIOURS.get(node.kind)
    if behaviour is None:
        raise InvariantBroken(f"element {node.id}: no behaviour is registered for kind {node.kind}")
    return behaviour
