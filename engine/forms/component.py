"""One component of a form-js schema while it is read: what was asked of it is noted, and the rest is reported by name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from engine.bpmn.definition import Problem
from engine.forms.text import line_of

DRAWING = frozenset({"layout", "id", "type"})  # where it stands beside others, and what every component has
_EXPRESSION = re.compile(r"\s*=|.*\{\{", re.DOTALL)  # FEEL behind = and templates
MAX_TEXT = 10_000
MAX_REPORTED = 500  # problems of one file, and warnings


@dataclass(slots=True)
class Reading:
    """One file being read."""

    file: str | None
    content: bytes
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    def problem(self, component_id: str | None, what: str, why: str) -> None:
        if len(self.problems) < MAX_REPORTED:
            self.problems.append(self._about(component_id, what, why))

    def warn(self, component_id: str | None, what: str, why: str) -> None:
        if len(self.warnings) < MAX_REPORTED:
            self.warnings.append(self._about(component_id, what, why))

    def _about(self, component_id: str | None, what: str, why: str) -> Problem:
        return Problem(component_id, line_of(self.content, component_id) if component_id else None, what, why, self.file)


@dataclass(slots=True)
class Component:
    """`raw` as the file has it."""

    raw: dict[str, Any]
    reading: Reading
    asked: set[str] = field(default_factory=set)

    @property
    def id(self) -> str | None:
        found = self.raw.get("id") or self.raw.get("key")
        return found if isinstance(found, str) else None

    @property
    def kind(self) -> str:
        return str(self.raw.get("type"))[:80]

    @property
    def named(self) -> str:
        label = self.raw.get("label")
        return f"{self.kind} {label[:80]!r}" if isinstance(label, str) and label.strip() else f"{self.kind} {self.id or 'without id'}"

    def problem(self, what: str, why: str) -> None:
        self.reading.problem(self.id, f"{self.named} {what}", why)

    def warn(self, what: str, why: str) -> None:
        self.reading.warn(self.id, f"{self.named} {what}", why)

    def get(self, name: str) -> Any:
        """The property, noted as read; None where it is not there or null."""
        self.asked.add(name)
        return self.raw.get(name)

    def text(self, name: str) -> str:
        """Plain text, empty if there is none."""
        value = self.get(name)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            self.problem(f"has the {name} {str(value)[:80]!r}", f"a text of at most {MAX_TEXT:,} characters")
            return ""
        if _EXPRESSION.match(value):
            self.problem(f"has an expression as its {name}, which is not evaluated", "plain text")
            return ""
        return value.strip()

    def flag(self, name: str) -> bool:
        value = self.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.problem(f"has {name} {str(value)[:80]!r}, which is not evaluated", "true or false")
        return False

    def number(self, name: str) -> Decimal | None:
        """A number, or a text that is one."""
        value = self.get(name)
        if value is None or value == "":
            return None
        text = str(value).strip()
        if (
            isinstance(value, int | float | str)
            and not isinstance(value, bool)
            and re.fullmatch(r"-?\d{1,30}(\.\d{1,30})?", text, re.ASCII)
        ):
            return Decimal(text)
        self.problem(f"has {name} {text[:80]!r}", "a number, written out")
        return None

    def whole(self, name: str) -> int | None:
        number = self.number(name)
        if number is None or (number == number.to_integral_value() and 0 <= number <= 10**8):
            return None if number is None else int(number)
        self.problem(f"has {name} {number}", "a whole number, 0 or more")
        return None

    def part(self, name: str) -> Component:
        """An object within it. What it holds is read and reported as the component's own."""
        value = self.get(name)
        if value is not None and not isinstance(value, dict):
            self.problem(f"has {name} {str(value)[:80]!r}", "an object")
        inner = dict(value) if isinstance(value, dict) else {}
        return Part(
            {**inner, "type": self.kind, "id": self.id, "label": self.raw.get("label")}, self.reading, name=name, own=frozenset(inner)
        )

    def report(self) -> None:
        """Warn about what nobody asked for."""
        for name in self.raw.keys() - self.asked - DRAWING:
            if self.raw[name] is not None:
                self.warn(f"has the property {name[:80]!r}, which is not read", "the properties that docs/forms.md lists")


@dataclass(slots=True)
class Part(Component):
    """An object within a component. `own`: its own names, beside those of the component that messages need."""

    name: str = ""
    own: frozenset[str] = frozenset()

    def report(self) -> None:
        for name in sorted(self.own - self.asked):
            if self.raw[name] is not None:
                self.warn(f"has the property {f'{self.name}.{name}'[:80]!r}, which is not read", "the properties that docs/forms.md lists")
