"""What an author means by a name: the open work at an element with this id or name, or of this handler or topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from engine.core.effects import NewExternalTask, NewIncident, NewJob, NewTask
from engine.simulation.case import Case, Leaf
from engine.simulation.works import NotPossible, Works, listed

KINDS: Mapping[str, tuple[type[Leaf], ...]] = {
    "task": (NewTask,),
    "job": (NewJob, NewExternalTask),
    "incident": (NewIncident, NewJob, NewExternalTask),
}


def find(house: Works, what: str, name: str, *, case: Case | None = None, number: int = 1) -> tuple[Case, Leaf]:
    """The oldest open `what` of this name (a key of KINDS), or the `number`-th. Raises NotPossible with what there is."""
    candidates = of(house, what, case)
    found = [each for each in candidates if name in names_of(*each)]
    if len(found) >= number:
        return found[number - 1]
    wanted = f"an open {what} {name!r}" if number == 1 else f"at least {number} open {what}s {name!r}"
    there = list(dict.fromkeys(names_of(*each)[0] for each in candidates))
    near = get_close_matches(name, [each for pair in candidates for each in names_of(*pair)], 1)
    hint = f" (did you mean {near[0]!r}?)" if near and not found else ""
    raise NotPossible(f"expected {wanted}, found {len(found) if found else listed(there)}{hint}{_gone_by(house, what, name, case)}")


def of(house: Works, what: str, case: Case | None = None) -> list[tuple[Case, Leaf]]:
    """All that is open of a kind, oldest first: of incidents of tokens, the oldest token, however often it was tried again."""
    found = [(where, leaf) for where, leaf in house.open(*KINDS[what]) if (case is None or where is case) and _is(what, where, leaf)]
    return sorted(found, key=lambda each: each[1].token_id if isinstance(each[1], NewIncident) else each[1].id)


def _is(what: str, case: Case, leaf: Leaf) -> bool:
    match leaf:
        case NewJob(kind=kind) if what == "job":
            return kind == "service" and leaf.id not in case.failed
        case NewJob() | NewExternalTask():
            return (leaf.id in case.failed) == (what == "incident")
    return True


def names_of(case: Case, leaf: Leaf) -> Sequence[str]:
    """The element's id first."""
    definition = case.definitions[case.instances[case.instance_of(leaf.token_id)].definition_id]
    names = [leaf.element_id, definition.nodes[leaf.element_id].name]
    match leaf:
        case NewTask():
            names.append(leaf.name)
        case NewJob() | NewExternalTask():
            names.append(leaf.topic)
    return [each for each in dict.fromkeys(names) if each]


def _gone_by(house: Works, what: str, name: str, case: Case | None) -> str:
    """That it was there, and is over, says more than that it is not there."""
    over = {"task": ("task_completed", "task_cancelled"), "job": ("job_completed", "external_task_completed")}.get(what, ())
    events = [each for each in house.trace if each.kind in over and name in (each.element_id, each.name)]
    if case is not None and case.ended and not events:
        return f"; the case is {case.ended}"
    return f"; {name!r} is {events[-1].kind.rpartition('_')[2]} already" if events else ""
