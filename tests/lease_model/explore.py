"""Every state that can be reached, breadth first: so the first one that breaks a claim is reached in the fewest moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.lease_model.claims import CLAIMS
from tests.lease_model.moves import Move, moves
from tests.lease_model.rest import Edge, Lasso, restless
from tests.lease_model.rules import Rules
from tests.lease_model.state import State, first, renumbered
from tests.lease_model.words import said


@dataclass(frozen=True, slots=True)
class Counterexample:
    """`again`: how many of the last steps repeat for ever; 0 where the run ends."""

    claim: str
    steps: tuple[str, ...]
    again: int = 0


@dataclass(slots=True)
class Explored:
    """`changes`: the statuses that followed one another. A model that breaks a claim is explored no further."""

    states: int = 0
    moves: int = 0
    actions: set[str] = field(default_factory=set)
    changes: set[tuple[str, str]] = field(default_factory=set)
    broken: Counterexample | None = None


LIVENESS = "everything comes to rest"


def explore(rules: Rules) -> Explored:
    start = first(rules.workers)
    known: dict[State, int] = {start: 0}
    order = [start]
    came: list[tuple[int, str, str]] = [(-1, "", "")]
    edges: list[list[Edge]] = []
    explored = Explored()
    while len(edges) < len(order):
        state = order[len(edges)]
        following = []
        for move in moves(state, rules):
            after = renumbered(move.after)
            if (to := known.get(after)) is None:
                to = known[after] = len(order)
                order.append(after)
                came.append((len(edges), move.action, move.who))
                if (claim := _broken(after)) is not None:
                    explored.states, explored.broken = len(order), _told(claim, start, _path(came, to), rules)
                    return explored
            following.append(Edge(to, move.action, move.who, move.fair, move.seldom))
            explored.actions.add(move.action)
            if state.row.status != after.row.status:
                explored.changes.add((state.row.status, after.row.status))
        explored.moves += len(following)
        edges.append(following)
    explored.states = len(order)
    if (lasso := restless(order, edges)) is not None:
        explored.broken = _lasso_told(lasso, start, _path(came, lasso.at), rules)
    return explored


def _broken(state: State) -> str | None:
    return next((claim for claim, holds in CLAIMS.items() if not holds(state)), None)


def _path(came: Sequence[tuple[int, str, str]], to: int) -> list[tuple[str, str]]:
    path = []
    while to:
        to, action, who = came[to]
        path.append((action, who))
    return path[::-1]


def _told(claim: str, state: State, path: Sequence[tuple[str, str]], rules: Rules) -> Counterexample:
    """The same moves once more, with the lease numbers as they are."""
    steps = []
    for wanted in path:
        move: Move = next(move for move in moves(state, rules) if (move.action, move.who) == wanted)
        steps.append(said(move, state))
        state = move.after
    return Counterexample(claim, tuple(steps))


def _lasso_told(lasso: Lasso, state: State, path: Sequence[tuple[str, str]], rules: Rules) -> Counterexample:
    told = _told(LIVENESS, state, [*path, *lasso.round], rules)
    return Counterexample(LIVENESS, told.steps, len(lasso.round))
