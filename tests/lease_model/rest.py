"""Everything comes to rest: no run goes on for ever, and none stands still, while the item is not at rest.

Weak fairness: what could happen all the time from some moment on happens. It is asked of a worker that has something in
hand (each handler has a hard deadline), of clocks, of recovery, and of acquisition by any one worker. Nothing is asked of
people and connections; operators and stops (`seldom`) come finitely often. So a run that never rests ends up in one
strongly connected part of the moves that are not seldom, and it is fair there if each kind of fair move is made there, or
cannot be made in one of its states.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tests.lease_model.state import AT_REST, State


class Edge(NamedTuple):
    to: int
    action: str
    who: str
    fair: str
    seldom: bool


@dataclass(frozen=True, slots=True)
class Lasso:
    """A run that never rests: some way to the state `at`, then this round for ever; an empty round stands still."""

    at: int
    round: tuple[tuple[str, str], ...]


def restless(states: Sequence[State], edges: Sequence[Sequence[Edge]]) -> Lasso | None:
    """The first such run, or None. A run may also stand still in any state in which no fair move is possible."""
    going = [state.row.status not in AT_REST for state in states]
    kinds = sorted({edge.fair for following in edges for edge in following if edge.fair})

    def inner(at: int) -> Iterator[Edge]:
        return (edge for edge in edges[at] if not edge.seldom and going[edge.to])

    for part in _strongly_connected(len(states), going, inner):
        members = set(part)
        if all(_is_fair(kind, members, edges, inner) for kind in kinds):
            return _round(min(part), members, kinds, edges, inner)
    return None


def _is_fair(kind: str, part: set[int], edges: Sequence[Sequence[Edge]], inner: Callable[[int], Iterator[Edge]]) -> bool:
    if any(all(edge.fair != kind for edge in edges[at]) for at in part):
        return True
    return any(edge.fair == kind and edge.to in part for at in part for edge in inner(at))


def _round(at: int, part: set[int], kinds: Sequence[str], edges: Sequence[Sequence[Edge]], inner: Callable[[int], Iterator[Edge]]) -> Lasso:
    """A way around that meets each kind of fair move, or a state in which it is impossible, and comes back."""
    here, walked = at, list[tuple[str, str]]()
    passed: list[int] = [at]
    made: set[str] = set()
    for kind in kinds:
        if kind in made or any(all(edge.fair != kind for edge in edges[state]) for state in passed):
            continue
        steps = _walk(here, part, inner, lambda edge, kind=kind: edge.fair == kind or all(e.fair != kind for e in edges[edge.to]))
        here = steps[-1].to
        walked += [(edge.action, edge.who) for edge in steps]
        passed += [edge.to for edge in steps]
        made |= {edge.fair for edge in steps}
    if here != at or (not walked and len(part) > 1):
        walked += [(edge.action, edge.who) for edge in _walk(here, part, inner, lambda edge: edge.to == at)]
    return Lasso(at, tuple(walked))


def _walk(start: int, part: set[int], inner: Callable[[int], Iterator[Edge]], found: Callable[[Edge], bool]) -> list[Edge]:
    """The shortest way within the part whose last move is what is looked for."""
    came: dict[int, tuple[int, Edge]] = {}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for edge in inner(at):
            if edge.to not in part:
                continue
            if found(edge):
                way = [edge]
                while at != start:
                    at, before = came[at]
                    way.append(before)
                return way[::-1]
            if edge.to not in came and edge.to != start:
                came[edge.to] = (at, edge)
                queue.append(edge.to)
    raise AssertionError("a strongly connected part has a way from everywhere to everywhere")


def _strongly_connected(count: int, going: Sequence[bool], inner: Callable[[int], Iterator[Edge]]) -> Iterator[list[int]]:
    """Tarjan's algorithm with a stack of its own: the parts of the states that are not at rest, single states included."""
    found = [0] * count  # when a state was found, from 1; 0: not yet
    low = [0] * count
    on_stack = bytearray(count)
    stack: list[int] = []
    clock = 0
    for root in range(count):
        if found[root] or not going[root]:
            continue
        work = [(root, inner(root))]
        clock += 1
        found[root] = low[root] = clock
        stack.append(root)
        on_stack[root] = True
        while work:
            at, following = work[-1]
            for edge in following:
                if not found[edge.to]:
                    clock += 1
                    found[edge.to] = low[edge.to] = clock
                    stack.append(edge.to)
                    on_stack[edge.to] = True
                    work.append((edge.to, inner(edge.to)))
                    break
                if on_stack[edge.to]:
                    low[at] = min(low[at], found[edge.to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == found[at]:
                    part: list[int] = []
                    while not part or part[-1] != at:
                        part.append(stack.pop())
                        on_stack[part[-1]] = False
                    yield part
