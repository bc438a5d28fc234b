"""What a deployed form is, once read: fields, and what is drawn between them."""

from __future__ import annotations

from dataclasses import dataclass

from engine.bpmn.definition import FormField, Problem


@dataclass(frozen=True, slots=True)
class Drawn:
    """What stands between fields and takes no value. `kind`: heading (of a group), text, line."""

    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A form. `parts` in the order of its file."""

    key: str
    parts: tuple[FormField | Drawn, ...]
    version_tag: str | None = None
    warnings: tuple[Problem, ...] = ()

    @property
    def fields(self) -> tuple[FormField, ...]:
        return tuple(part for part in self.parts if isinstance(part, FormField))
