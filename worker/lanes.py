"""Which slots a worker has, and what may fill them: a flood of one sort of work cannot keep another waiting.

`handlers` (service jobs, a child process each), `engine` (timers, messages, continuations and the like), `inline` (handlers
in threads: half of the engine's slots, if there are any) and `outbox` (deliveries). A kind that BATON_KIND_SLOTS names leaves
its lane for one of its own: it never has more slots than these, and the others never wait for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from engine.config import Settings
from worker.handlers import Handler

Kind = tuple[str, str]  # (kind, topic) of jobs; (kind of delivery, "")

THROWN: tuple[Kind, ...] = (("throw", "signal"), ("throw", "message"), ("signal", ""))
ENGINE_JOBS: tuple[Kind, ...] = (
    *(("cancel", ""), ("continue", ""), ("hold", ""), ("message", ""), ("start_timer", ""), ("timer", "")),
    *THROWN,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A lane to be. `children`: its items run in processes."""

    name: str
    slots: int
    kinds: tuple[Kind, ...]
    deliveries: bool = False
    children: bool = False


def plan(settings: Settings, handlers: Mapping[str, Handler]) -> list[Plan]:
    """The lanes of a worker that has these handlers."""
    inline = tuple(("service", name) for name, handler in handlers.items() if handler.inline)
    in_children = tuple(("service", name) for name, handler in handlers.items() if not handler.inline)
    outbox = (("http", ""), *((("mail", ""),) if settings.mail_server else ()))
    reserved = dict(settings.kind_slots)
    for_inline = max(1, settings.worker_slots // 2) if any(name_of(kind) not in reserved for kind in inline) else 0
    shared = [
        Plan("handlers", settings.handler_processes, in_children, children=True),
        Plan("engine", max(1, settings.worker_slots - for_inline), ENGINE_JOBS),
        *([Plan("inline", for_inline, inline)] if inline else []),
        Plan("outbox", settings.delivery_slots, outbox, deliveries=True),
    ]
    return [lane for one in shared for lane in _apart(one, reserved)]


def unknown(settings: Settings, plans: Collection[Plan]) -> list[str]:
    """Names that have slots and that this worker does not run: those of other workers, or misspelled."""
    known = {name_of(kind) for plan in plans for kind in plan.kinds}
    return sorted({name for name, _ in settings.kind_slots} - known)


def name_of(kind: Kind) -> str:
    """How settings name it: a handler by its name, anything else by its kind."""
    return kind[1] if kind[0] == "service" else kind[0]


def _apart(lane: Plan, reserved: Mapping[str, int]) -> list[Plan]:
    """The lane without the kinds that have slots of their own, and a lane for each of these."""
    rest = tuple(kind for kind in lane.kinds if name_of(kind) not in reserved)
    own: dict[str, tuple[Kind, ...]] = {}
    for kind in lane.kinds:
        if name_of(kind) in reserved:
            own[name_of(kind)] = (*own.get(name_of(kind), ()), kind)
    apart = [Plan(name, reserved[name], kinds, lane.deliveries, lane.children) for name, kinds in own.items()]
    return [*([Plan(lane.name, lane.slots, rest, lane.deliveries, lane.children)] if rest else []), *apart]
