"""What happened, in order, in words that do not depend on ids: the same for the simulator and for a history of the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

# What an event says besides its element, and what of it means the same in every run. Times and ids do not.
TOLD: Mapping[str, tuple[str, ...]] = {
    "instance_started": ("what", "business_key"),
    "instance_cancelled": ("reason",),
    "element_left": ("cancelled", "loop"),
    "task_created": ("name", "assignee"),
    "job_created": ("kind", "topic", "due_in_seconds"),
    "job_completed": ("kind",),
    "job_failed": ("error",),
    "external_task_created": ("topic",),
    "external_task_failed": ("error",),
    "delivery_created": ("kind", "destination"),
    "subscription_opened": ("message", "signal", "key"),
    "signal_thrown": ("signal",),
    "message_thrown": ("message", "key"),
    "variables_set": ("variables",),
    "join_passed": ("flows",),
    "error_caught": ("code", "message", "thrown_by"),
    "escalation_thrown": ("code", "caught_by"),
    "condition_met": ("condition",),
    "condition_failed": ("message",),
    "compensation_thrown": ("activity", "executions", "waits"),
    "compensation_begun": ("handler",),
    "compensation_done": ("cancelled",),
    "decision_evaluated": ("key", "name", "version", "inputs", "rules", "result"),
    "incident_opened": ("kind", "message"),
}

# What people and workers do with what is open is no part of a run: a simulation has neither.
NOT_TOLD = (
    *(
        "task_claimed",
        "task_unclaimed",
        "task_assigned",
        "message_stored",
        "definition_deployed",
        "definition_deleted",
        "decision_deployed",
        "form_deployed",
    ),
    *(f"{item}_{done}" for item in ("job", "external_task", "delivery") for done in ("acquired", "recovered", "released", "cancelled")),
)


@dataclass(frozen=True, slots=True)
class Happened:
    """One event. `instance`: 1 for the first instance of the run, 2 for the next. `step`: which step of a script made it happen."""

    at: datetime
    instance: int
    process: str
    kind: str
    element_id: str | None
    name: str
    data: Mapping[str, Any]
    step: int = 0

    @property
    def fact(self) -> tuple[int, str, str, str | None, Mapping[str, Any]]:
        """What must be the same however it was run."""
        return self.instance, self.process, self.kind, self.element_id, self.data

    def __str__(self) -> str:
        return f"{self.kind} {self.element_id}" if self.element_id else self.kind

    def as_json(self) -> dict[str, Any]:
        return {
            "at": self.at.isoformat(),
            "step": self.step,
            "instance": self.instance,
            "process": self.process,
            "kind": self.kind,
            "element_id": self.element_id,
            "name": self.name,
            **({"data": dict(self.data)} if self.data else {}),
        }


def told(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an event's data that TOLD names. A flag that is not set is as one that is not there."""
    return {name: data[name] for name in TOLD.get(kind, ()) if data.get(name) is not None}
