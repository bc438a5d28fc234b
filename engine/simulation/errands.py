"""The engine's own work, which no worker's handler does: what is thrown, brought, fired, begun. One row each, as in the job table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.core.reading import brought
from engine.core.values import Variable
from engine.simulation.case import Case
from engine.simulation.starts import Deployed, Start


@dataclass(frozen=True, slots=True)
class Thrown:
    """A message or signal on its way to whoever has it. `receivers`: of a signal, those who waited when it was thrown."""

    name: str
    variables: Mapping[str, Variable]
    receivers: tuple[tuple[Case, UUID], ...] = ()
    starts: tuple[Start, ...] = ()
    key: str = ""
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class Errand:
    """kind: start_timer (of `process` at `element_id`) | signal, message (`thrown`) | bring (a signal to a `start`, or to the
    subscription of a case) | deliver (a stored message to the subscription of a case).
    """

    id: UUID
    kind: str
    due_at: datetime
    thrown: Thrown | None = None
    case: Case | None = None
    subscription: UUID | None = None
    start: Start | None = None
    process: Deployed | None = None
    element_id: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """A message that nobody waited for, until it expires."""

    name: str
    key: str
    variables: Mapping[str, Variable]
    expires_at: datetime


def thrown_by(payload: Mapping[str, Any]) -> dict[str, Variable]:
    """The variables of a throw, as its job carries them."""
    return brought(payload["variables"])
