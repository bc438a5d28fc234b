"""Why is nothing happening? For each token that waits, what it waits for, as one of a fixed set of reasons.

Pure: it looks at rows that `queries.instance` read. The sentences are the templates' business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from engine.queries.instance import IncidentRow, SubscriptionRow, TaskRow, Token, WorkRow
from engine.queries.resting import PauseRow
from engine.queries.turn import Turn


@dataclass(frozen=True, slots=True)
class Reason:
    """`kind` names the sentence; `row` is what it speaks of; `element_id`: where.

    incident, task_free, task_held, held, paused, turn, job_due, job_later, leased, timer, timer_due, message, signal, condition,
    joining, reset, inside, calls, compensating, unknown. The row of a condition is what it was last: true, false, or why that
    cannot be said; that of what is paused is the pause.
    """

    kind: str
    element_id: str
    row: Any = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """One token: the reason at its own element first, then what else could move it (boundary events, choices)."""

    token: Token
    reasons: tuple[Reason, ...]
    besides: tuple[Reason, ...] = ()

    @property
    def stuck(self) -> bool:
        """Nothing goes on here without a person's repair."""
        return any(reason.kind == "incident" for reason in self.reasons)


def why(
    tokens: Sequence[Token],
    *,
    tasks: Sequence[TaskRow],
    work: Sequence[WorkRow],
    subscriptions: Sequence[SubscriptionRow],
    incidents: Sequence[IncidentRow],
    turn: Turn | None = None,
    paused: Callable[[WorkRow], PauseRow | None] = lambda item: None,
) -> tuple[Waiting, ...]:
    """The tokens in their order, the stuck ones first.

    A token that stands for a subprocess is left out while its inner ones wait, unless it is being compensated. `turn`: the exclusive
    work of the case that the others wait for. `paused`: the pause that an item rests by.
    """
    stuck_work = {incident.item_id: incident for incident in incidents}
    found = []
    for token in tokens:
        reasons = [
            *(
                Reason("incident", token.element_id, incident)
                for incident in incidents
                if incident.work == "token" and incident.item_id == token.id
            ),
            *(_task(task) for task in tasks if task.token_id == token.id and task.status in ("open", "claimed")),
            *(_work(item, stuck_work, turn, paused) for item in work if item.token_id == token.id and item.ended_at is None),
            *(
                Reason("signal" if row.kind == "signal" else "message", row.element_id, row)
                for row in subscriptions
                if row.token_id == token.id
            ),
            *(Reason("condition", event, was) for event, was in sorted((token.memory or {}).get("conditions", {}).items())),
        ]
        if "taken" in (token.memory or {}):
            reasons.insert(0, Reason("reset", token.element_id, token))
        if token.calls is not None:
            reasons.insert(0, Reason("calls", token.element_id, token))
        if token.status == "joining":
            reasons.insert(0, Reason("joining", token.element_id, token))
        own = [reason for reason in reasons if reason.element_id == token.element_id]
        others = [reason for reason in reasons if reason.element_id != token.element_id]
        if token.owns_scope and not own:
            if not others and not token.compensates:
                continue
            own = [Reason("compensating" if token.compensates else "inside", token.element_id, token)]
        if not own and not others:
            own = [Reason("unknown", token.element_id, token)]
        # At an event-based gateway every reason is behind it: none is the token's own, all are its choices.
        found.append(Waiting(token, tuple(own or others), tuple(others if own else ())))
    return tuple(sorted(found, key=lambda waiting: not waiting.stuck))


def _task(task: TaskRow) -> Reason:
    return Reason("task_held" if task.status == "claimed" else "task_free", task.element_id, task)


def _work(item: WorkRow, stuck: dict[UUID, IncidentRow], turn: Turn | None, paused: Callable[[WorkRow], PauseRow | None]) -> Reason:
    element_id = item.element_id or ""
    if item.status == "failed":
        return Reason("incident", element_id, stuck.get(item.id, item))
    if item.held == ["exclusive"] and turn is not None:
        return Reason("turn", element_id, turn)
    if item.status == "available" and (pause := paused(item)) is not None:
        return Reason("paused", element_id, pause)
    if item.held:
        return Reason("held", element_id, item)
    if item.status == "leased":
        return Reason("leased", element_id, item)
    if item.kind == "timer":
        return Reason("timer" if item.wait_seconds > 0 else "timer_due", element_id, item)
    return Reason("job_later" if item.wait_seconds > 0 else "job_due", element_id, item)
