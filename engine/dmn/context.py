"""What the parsers of a file of decisions share: the problems and warnings found, which vendor attributes were asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.bpmn.context import MAX_REPORTED
from engine.bpmn.definition import Problem
from engine.dmn import names
from engine.dmn.definition import Type
from engine.dmn.language import language_of, parsed, parsed_tests
from engine.dmn.names import Element, named
from engine.expressions import Expression, ExpressionError

MAX_EXPRESSIONS = 10_000  # different ones of a file: some seconds of reading


@dataclass(slots=True)
class Context:
    """One file being read. `known`: the names that its expressions may use, so that names with blanks are one name."""

    file: str | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    known: frozenset[str] = frozenset()
    types: dict[str, Type] = field(default_factory=dict)  # item definitions by name
    language: str | None = None  # expressionLanguage of the file
    _read: set[tuple[Element, str]] = field(default_factory=set)
    _full: bool = False
    _parsed_before: dict[tuple[bool, str, str, frozenset[str]], Expression] = field(default_factory=dict)

    def problem(self, element: Element, what: str, why: str) -> None:
        if len(self.problems) < MAX_REPORTED:
            self.problems.append(self._about(element, what, why))

    def warn(self, element: Element, what: str, why: str) -> None:
        if len(self.warnings) < MAX_REPORTED:
            self.warnings.append(self._about(element, what, why))

    def _about(self, element: Element, what: str, why: str) -> Problem:
        return Problem(nearest_id(element), names.line(element), what, why, self.file)

    def attribute(self, element: Element, name: str) -> str | None:
        """A vendor attribute, noted as read."""
        for space in names.CAMUNDA:
            tag = f"{{{space}}}{name}"
            value = element.get(tag)
            if value is not None:
                self._read.add((element, tag))
                return value
        return None

    def note(self, element: Element) -> None:
        """An extension element that was asked for."""
        self._read.add((element, ""))

    def was_read(self, element: Element, tag: str = "") -> bool:
        return (element, tag) in self._read

    def expression(self, holder: Element | None, where: str) -> Expression | None:
        """The expression in a holder of `text`; None if it says nothing."""
        return self._parsed(holder, where, parsed)

    def tests(self, holder: Element | None, where: str) -> Expression | None:
        """The unary tests in a holder of `text` (FEEL); None if it says nothing."""
        return self._parsed(holder, where, parsed_tests)

    def language_at(self, holder: Element) -> str | None:
        """The language of what a holder says: its own, that of the file, else what the text shows. None, and a problem, for another one."""
        given = (holder.get("expressionLanguage") or "").strip() or self.language
        language = language_of(given, names.text_in(holder))
        if language is None:
            self.problem(holder, f"{named(holder)} is written in {given}", "FEEL, or JUEL such as ${amount > 10}")
        return language

    def _parsed(self, holder: Element | None, where: str, parse: Callable[[str, str, frozenset[str]], Expression]) -> Expression | None:
        text = names.text_in(holder)
        if holder is None or not text:
            return None
        language = self.language_at(holder)
        if language is None:
            return None
        place = (parse is parsed_tests, language, text, self.known)  # cells of a table often say the same
        if (before := self._parsed_before.get(place)) is not None:
            return before
        if len(self._parsed_before) >= MAX_EXPRESSIONS:
            if not self._full:
                self._full = True
                self.problem(holder, f"the file has more than {MAX_EXPRESSIONS:,} different expressions", "fewer, or several files")
            return None
        try:
            found = self._parsed_before[place] = parse(text, language, self.known)
        except ExpressionError as error:
            self.problem(holder, f"{where} is not an expression: {error}", "an expression as docs/expressions.md describes it")
            return None
        return found


def nearest_id(element: Element) -> str | None:
    """The id of the element, or of the nearest one around it that has one."""
    around: Element | None = element
    while around is not None:
        if found := around.get("id"):
            return str(found)
        around = around.getparent()
    return None
