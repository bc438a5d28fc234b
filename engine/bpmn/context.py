"""What the parsers of elements share while one file is read: the problems found so far, and what was looked at.

What a parser asks for is noted as read (`noted.py`); `report_unread` warns about vendors' attributes and extension elements that it did not
ask for, so that a parser in a new file needs no second list of what it knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.bpmn import names, stand_ins, vocabulary
from engine.bpmn.definition import Problem
from engine.bpmn.languages import FEEL, JUEL, language_of
from engine.bpmn.names import BPMN, CAMUNDA_LIKE, XSI, Element
from engine.bpmn.noted import ITSELF, TEXT, asked, note
from engine.bpmn.reported import UNKNOWN, why_not
from engine.bpmn.times import TimerError, parse_timer
from engine.expressions import Expression, ExpressionError, UnknownCall, as_variable, constant, limits, parse
from engine.expressions.parse import Compiled
from engine.zones import RELEASE, UnknownZone, zone_named

MAX_REPORTED = 1_000  # problems of one file, and warnings; a person reads fewer
MAX_NAMED = 200  # names of what lies in an element that is not read
MAX_NAME = 255  # characters of ids, message names, topics: they are parts of index keys


@dataclass(slots=True)
class Context:
    """One file being read."""

    file: str | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    messages: dict[str, Element] = field(default_factory=dict)  # root elements by id
    errors: dict[str, Element] = field(default_factory=dict)
    data: dict[str, Element] = field(default_factory=dict)
    lanes: dict[str, Element] = field(default_factory=dict)  # element id -> the lane that assigns it
    escalations: dict[str, Element] = field(default_factory=dict)
    event_definitions: dict[str, Element] = field(default_factory=dict)  # those beside the processes, by id
    signals: dict[str, Element] = field(default_factory=dict)
    resources: dict[str, Element] = field(default_factory=dict)
    operations: dict[str, Element] = field(default_factory=dict)
    feel: bool = False  # whether the file says that its expressions are FEEL
    message_flows: dict[tuple[str, str], list[Element]] = field(default_factory=dict)  # engine.bpmn.message_flows
    stored: bool = False  # it was deployed before: what it names may be gone since
    by_a_vendor: bool = False  # the file speaks a vendor's dialect, or ours (decision 0050)
    elements: list[Element] = field(default_factory=list)  # every element of the file, in its order: holding them keeps their notes
    refused: set[Element] = field(default_factory=set)  # a problem is about them, so not all of them was read
    _unread: set[tuple[Element, str]] = field(default_factory=set)  # warned about
    _left_out: Counter[str] = field(default_factory=Counter)
    _made: list[Element] = field(default_factory=list)
    _copies: list[tuple[Element, Element]] = field(default_factory=list)  # what was read in place of what stands in the file

    # ---- reporting

    def problem(self, element: Element | None, what: str, why: str) -> None:
        self.add(self._about(element, what, why))
        if element is not None:
            self.refused.add(element)

    def add(self, problem: Problem) -> None:
        self._list(problem, self.problems, "problems")

    def warn(self, element: Element | None, what: str, why: str) -> None:
        self._list(self._about(element, what, why), self.warnings, "warnings")

    def left_out(self, kind: str) -> list[Problem]:
        """How many problems or warnings are not listed, as the last of them."""
        number = self._left_out[kind]
        return [Problem(None, None, f"{number:,} more {kind} are not listed", f"at most {MAX_REPORTED:,}", self.file)] if number else []

    def _list(self, problem: Problem, listed: list[Problem], kind: str) -> None:
        if len(listed) < MAX_REPORTED - 1:  # the last one says how many are left out
            listed.append(problem)
        else:
            self._left_out[kind] += 1

    def _about(self, element: Element | None, what: str, why: str) -> Problem:
        if element is None:
            return Problem(None, None, what, why, self.file)
        return Problem(nearest_id(element), names.line(element), what, why, self.file)

    # ---- reading

    def attribute(self, element: Element, name: str, *spaces: str) -> str | None:
        """A vendor attribute: in our namespace or one that means the same, or in the given ones. The first is read, and noted so."""
        tags = (f"{{{space}}}{name}" for space in spaces or (names.BATON, *CAMUNDA_LIKE))
        return next((element.get(tag) for tag in tags if tag in element.attrib), None)

    def of_process(self, element: Element, name: str) -> str | None:
        """What the process around an element says for those of its elements that do not say it themselves."""
        process = next(element.iterancestors(f"{{{BPMN}}}process"), None)
        return None if process is None else self.attribute(process, name)

    def extension(self, element: Element, name: str, *spaces: str) -> Element | None:
        """The first extension element of that name. Noted as read."""
        return next(self.extensions(element, name, *spaces), None)

    def extensions(self, element: Element, name: str, *spaces: str) -> Iterator[Element]:
        """The extension elements of that name, each noted as read."""
        wanted = {f"{{{space}}}{name}" for space in spaces or (names.BATON, *CAMUNDA_LIKE)}
        for child in names.extensions(element):
            if child.tag in wanted:
                note(child)
                yield child

    def expression(
        self, element: Element, text: str | None, where: str, *, language: str = "juel", instead: str | None = None
    ) -> Compiled | None:
        """The expression, None if there is no text; a text that is none is a problem of the element.

        `instead`: the variable that stands for one that calls what only its own engine has (decision 0075).
        """
        if text is None or not text.strip():
            return None
        try:
            return as_variable(parse(text.strip(), language=language))
        except UnknownCall as error:
            if instead is not None:
                return stand_ins.variable(element, where, f"calls what is not here: {error}", instead, self)
            self.problem(element, f"{where} is not an expression: {error}", "an expression as docs/expressions.md describes it")
            return None
        except ExpressionError as error:
            self.problem(element, f"{where} is not an expression: {error}", "an expression as docs/expressions.md describes it")
            return None

    def expressions(self, element: Element, text: str | None, where: str, *, instead: str | None = None) -> tuple[Expression, ...]:
        """A comma separated list, of which each item may be an expression. A list that an expression makes is one item."""
        if text and len(text) > limits.SOURCE_LENGTH:
            self.problem(element, f"{where} has {len(text)} characters", f"at most {limits.SOURCE_LENGTH}")
            return ()
        found = (self.expression(element, part, where, instead=instead) for part in split_list(text or ""))
        return tuple(expression for expression in found if expression is not None)

    def zeebe(self, element: Element, text: str | None, where: str) -> Compiled | None:
        """A Zeebe attribute: `= …` is FEEL, anything else is text."""
        if text is None or not text.strip():
            return None
        return self.expression(element, text, where, language="feel") if text.strip().startswith("=") else constant(text.strip())

    def formal(self, given: Element, where: str, *, instead: str | None = None) -> Compiled | None:
        """A formal expression of the standard (8.3.6), in the language that it, its text or the file says."""
        text = names.text(given)
        language = language_of(given, text, file_is_feel=self.feel)
        if language in (FEEL, JUEL):
            return self.expression(given, text, where, language=language, instead=instead)
        if instead is not None:
            return stand_ins.variable(given, where, f"is written in {language[:80]}, which is not run", instead, self)
        self.warn(given, f"{where} is written in {language[:80]}, which is not run", "an expression in ${…} or FEEL: it is taken as text")
        return self.expression(given, text, where)

    def either(self, element: Element, text: str | None, where: str) -> Compiled | None:
        """What Zeebe writes as `= …` and Camunda in `${…}`, in a place where both may stand."""
        return self.expression(element, text, where, language=FEEL if (text or "").strip().startswith("=") else JUEL)

    def timer(self, element: Element, kind: str, expression: Expression) -> None:
        """A timer whose expression is plain text must already be one."""
        if expression.is_constant:
            try:
                parse_timer(kind, expression.evaluate({}))
            except TimerError as error:
                self.problem(element, f"the timer's {kind} cannot be read: {error}", "ISO 8601, or cron for a cycle")

    def zone(self, element: Element, *places: Element) -> str:
        """baton:timeZone of the first of the places that has one, else of what is around them; UTC where none has.

        A zone that is gone since a version was deployed fails its timers when they are counted, and nothing else.
        """
        around = (place for place in places[0].iterancestors() if place not in places)
        zone = next((found for place in (*places, *around) if (found := self.attribute(place, "timeZone", names.BATON))), "UTC")
        try:
            zone_named(zone)
        except UnknownZone:
            tell = self.warn if self.stored else self.problem
            tell(places[0], f"{named(element)} is in the zone {zone!r}", f"a zone such as Europe/Berlin, of tzdata {RELEASE}")
            return zone if self.stored else "UTC"
        return zone

    # ---- what nobody asked for

    def report_unread(self, element: Element) -> None:
        """Warn about the foreign attributes and extension elements of this element that no parser asked for."""
        for key in element.attrib:
            tag = str(key)
            if names.split(tag)[0] not in ("", BPMN, XSI) and tag not in asked(element):
                self.unread_attribute(element, tag)
        for child in names.extensions(element):
            if not self.was_read(child) and child.tag not in vocabulary.BY_EDITORS:
                self.unread_extension(child)

    def was_read(self, extension: Element) -> bool:
        """Whether a parser asked for this extension element."""
        return bool(asked(extension))

    def made(self, element: Element) -> None:
        """An element that stands in no file was put between others; there is nothing to say of it."""
        note(element)
        self._made.append(element)

    def stands_for(self, copy: Element, original: Element) -> None:
        """What is asked of the copy is asked of the original."""
        self._copies.extend(zip(copy.iter(), original.iter(), strict=True))

    def count_copies(self) -> None:
        """The parsers are done: what they asked of copies, they asked of the originals; what is said of copies is said of them."""
        told: dict[Element, list[str]] = {}
        for element, tag in self._unread:
            told.setdefault(element, []).append(tag)
        for copy, original in self._copies:
            for what in asked(copy):
                note(original, what)
            self._unread |= {(original, tag) for tag in told.get(copy, ())}
            if copy in self.refused:
                self.refused.add(original)

    def unread_attribute(self, element: Element, tag: str) -> None:
        """Warn about an attribute, once."""
        self._ignored(element, tag, f"the attribute {names.shown(tag)}", why_not(tag))

    def unread_extension(self, element: Element) -> None:
        """Warn about an extension element, once."""
        tag = str(element.tag)
        self._ignored(element, ITSELF, f"the extension element {names.shown(tag)}", why_not(tag) + _names_in(element))

    def unread_element(self, element: Element) -> None:
        """Warn about an element, once, and so about all that lies in it."""
        self._ignored(element, ITSELF, f"the element {names.shown(str(element.tag))}", UNKNOWN + _names_in(element))

    def unread_text(self, element: Element) -> None:
        """Warn about the text in an element, once."""
        self._ignored(element, TEXT, f"the text in {names.shown(str(element.tag))}", UNKNOWN)

    def _ignored(self, element: Element, tag: str, what: str, why: str) -> None:
        if (element, tag) not in self._unread:
            self._unread.add((element, tag))
            self.warn(element, f"{what} is not read", f"nothing of it: {why}")


def _names_in(element: Element) -> str:
    """What an element that is not read holds: attributes and elements, each name once."""
    tags = dict.fromkeys(str(tag) for each in element.iter() for tag in (each.tag, *each.attrib) if each is not element or tag != each.tag)
    named = [names.shown(tag) for tag in tags]
    more = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
    return f", with its {', '.join(named[:MAX_NAMED])}{more}" if named else ""


def in_order(problems: list[Problem]) -> list[Problem]:
    """Each once, by line."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.line or 0, problem.element_id or "", problem.what))


def nearest_id(element: Element) -> str | None:
    """The id of the element, or of the nearest one around it that has one."""
    around: Element | None = element
    while around is not None:
        parent = around.getparent()
        # Ids within extensionElements name parts of an element, such as form fields.
        inside = parent is None or names.namespace(parent) != BPMN or names.local(parent) == "extensionElements"
        extension = inside and names.namespace(around) != BPMN
        if (found := around.attrib.get("id")) and not extension:
            return str(found)
        around = parent
    return None


def named(element: Element) -> str:
    """An element as problems call it: its tag with its name or id."""
    label = element.attrib.get("name") or element.attrib.get("id")
    return (
        f"{names.shown(str(element.tag))} '{' '.join(str(label).split())[:80]}'"
        if label
        else f"a {names.shown(str(element.tag))} without id"
    )


def split_list(text: str) -> list[str]:
    """Split at the commas that are outside `${…}`."""
    parts, depth, current = [], 0, ""
    for at, sign in enumerate(text):
        if sign == "{" and at and text[at - 1] in "$#":
            depth += 1
        elif sign == "}" and depth:
            depth -= 1
        if sign == "," and not depth:
            parts.append(current)
            current = ""
        else:
            current += sign
    return [part.strip() for part in (*parts, current) if part.strip()]
