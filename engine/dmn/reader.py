"""DMN files -> frozen decision graphs, or every reason why not. Tables are read by `tables.py`, other logic by `logic.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from engine.bpmn.context import MAX_NAME
from engine.bpmn.definition import Problem
from engine.bpmn.xml import Unreadable, parse_xml
from engine.dmn import names
from engine.dmn.context import Context
from engine.dmn.definition import ANY_TYPE, Decision, DecisionGraph, InputData, Invocation, Knowledge, Logic, Type
from engine.dmn.item_types import read_types, type_of
from engine.dmn.logic import logic_in, parameters_of, refuse_and_report
from engine.dmn.names import Element, named

ENDINGS = (".dmn", ".dmn11.xml", ".dmn.xml")


def is_decision_file(name: str) -> bool:
    """Whether a file holds decisions, by its name."""
    return name.lower().endswith(ENDINGS)


@dataclass(frozen=True, slots=True)
class ReadDecisions:
    """A graph for each file that could be read, by the file's name. Right only if `problems` is empty."""

    graphs: tuple[tuple[str, DecisionGraph], ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def read_decisions(files: Sequence[tuple[str, bytes]]) -> ReadDecisions:
    """Read the files of decisions of one deployment. Never raises for what they contain."""
    graphs: list[tuple[str, DecisionGraph]] = []
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for file, content in files:
        context = Context(file)
        if (graph := _read_file(file, content, context)) is not None:
            graphs.append((file, graph))
        problems += _sorted(context.problems)
        warnings += _sorted(context.warnings)
    problems += _keys_used_twice(graphs)
    return ReadDecisions(tuple(graphs), tuple(problems), tuple(warnings))


def _sorted(problems: list[Problem]) -> list[Problem]:
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.line or 0, problem.element_id or "", problem.what))


def _keys_used_twice(graphs: list[tuple[str, DecisionGraph]]) -> list[Problem]:
    used = Counter(key for _, graph in graphs for key in graph.decisions)
    return [
        Problem(key, decision.line, f"{used[key]} decisions have the id {key!r}", "an id of its own for each decision", file)
        for file, graph in graphs
        for key, decision in graph.decisions.items()
        if used[key] > 1
    ]


def _read_file(file: str, content: bytes, context: Context) -> DecisionGraph | None:
    try:
        root = parse_xml(content, file=file)
    except Unreadable as unreadable:
        context.problems.append(unreadable.problem)
        return None
    if names.tag(root) != "definitions":
        context.problem(root, f"the root element is {names.shown(str(root.tag))}", f"definitions, in the namespace {names.DMN[0]}")
        return None
    context.language = (root.get("expressionLanguage") or "").strip() or None
    read_types(root, context)
    return _File(root, context).read()


# ---- one file


@dataclass(slots=True)
class _File:
    root: Element
    context: Context
    decisions: dict[str, Element] = field(default_factory=dict)
    inputs: dict[str, Element] = field(default_factory=dict)
    knowledge: dict[str, Element] = field(default_factory=dict)
    components: frozenset[str] = frozenset()  # names in types, which any expression may spell with blanks and signs in them

    def read(self) -> DecisionGraph:
        self._index()
        self.components = _components(self.context)
        inputs = {key: InputData(key, _name(each), _variable_type(each, self.context)) for key, each in self.inputs.items()}
        knowledge = {key: model for key, each in self.knowledge.items() if (model := self._model(key, each)) is not None}
        decisions = {key: found for key, each in self.decisions.items() if (found := self._decision(key, each)) is not None}
        for service in names.children(self.root, "decisionService"):
            self.context.warn(service, f"{named(service)} is not called as a service", "its decisions by their own ids")
        if not self.decisions:
            self.context.problem(self.root, "the file has no decision", "at least one decision with an id")
        self._refuse_circles(self.decisions, "requiredDecision", "informationRequirement")
        self._refuse_circles(self.knowledge, "requiredKnowledge", "knowledgeRequirement")
        refuse_and_report(self.root, self.context)
        frozen = MappingProxyType(decisions), MappingProxyType(inputs), MappingProxyType(knowledge)
        return DecisionGraph(*frozen, warnings=tuple(_sorted(self.context.warnings)))

    def _index(self) -> None:
        seen: set[str] = set()
        for tag, kept in (("decision", self.decisions), ("inputData", self.inputs), ("businessKnowledgeModel", self.knowledge)):
            for element in names.children(self.root, tag):
                key = (element.get("id") or "").strip()
                if not key or len(key) > MAX_NAME:
                    what = "no id" if not key else "too long an id"
                    self.context.problem(
                        element, f"{named(element)} has {what}", f"an id of 1 to {MAX_NAME} characters: it is called by it"
                    )
                elif key in seen:
                    self.context.problem(element, f"{named(element)} has the id {key!r}, which another element has", "an id of its own")
                else:
                    kept[key] = element
                    seen.add(key)

    # ---- decisions

    def _decision(self, key: str, element: Element) -> Decision | None:
        required = tuple(self._required(element, "informationRequirement", "requiredDecision", self.decisions, "a decision"))
        inputs = tuple(self._required(element, "informationRequirement", "requiredInput", self.inputs, "an inputData"))
        models = tuple(self._required(element, "knowledgeRequirement", "requiredKnowledge", self.knowledge, "a businessKnowledgeModel"))
        others = [self.decisions[each] for each in required] + [self.inputs[each] for each in inputs]
        visible = [name(each) for each in others for name in (_result, _name)]
        self.context.known = self.components.union(visible, (_name(self.knowledge[each]) for each in models))
        logic = logic_in(element, self.context)
        self._check_calls(element, logic, models)
        tag = (self.context.attribute(element, "versionTag") or self._zeebe_tag(element) or "").strip() or None
        if logic is None:
            return None
        return Decision(
            key,
            _name(element) or key,
            _result(element),
            _variable_type(element, self.context),
            logic,
            required,
            inputs,
            models,
            _said(element, "description"),
            _said(element, "question"),
            tag,
            names.line(element),
        )

    def _zeebe_tag(self, element: Element) -> str | None:
        """zeebe:versionTag, an extension element."""
        for holder in names.children(element, "extensionElements"):
            for child in names.elements(holder):
                if child.tag == f"{{{names.ZEEBE}}}versionTag":
                    self.context.note(child)
                    return str(child.get("value") or "")
        return None

    def _required(self, element: Element, requirement: str, tag: str, known: dict[str, Element], what: str) -> dict[str, None]:
        found: dict[str, None] = {}
        for each in names.children(element, requirement):
            for reference in names.children(each, tag):
                key = names.target(reference)
                if key in known:
                    found[key] = None
                else:
                    self.context.problem(
                        reference, f"{named(element)} requires {reference.get('href')!r}, which is not in this file", f"the id of {what}"
                    )
        return found

    def _check_calls(self, element: Element, logic: Logic | None, models: tuple[str, ...]) -> None:
        """7.3.3: what is invoked is required."""
        if isinstance(logic, Invocation) and logic.function not in {_name(self.knowledge[each]) for each in models}:
            self.context.problem(element, f"{named(element)} calls {logic.function!r}", "a business knowledge model that it requires")

    def _model(self, key: str, element: Element) -> Knowledge | None:
        """6.3.9: encapsulated logic is a function definition."""
        function = names.child(element, "encapsulatedLogic")
        requires = tuple(self._required(element, "knowledgeRequirement", "requiredKnowledge", self.knowledge, "a businessKnowledgeModel"))
        if function is None:
            self.context.problem(element, f"{named(element)} has no logic", "an encapsulatedLogic")
            return None
        if (function.get("kind") or "FEEL").strip().upper() not in ("FEEL", "F"):
            self.context.problem(element, f"{named(element)} is a function of {function.get('kind')}", "one of FEEL")
            return None
        parameters = tuple(parameters_of(function, self.context))
        self.context.known = self.components.union(name for name, _ in parameters).union(_name(self.knowledge[each]) for each in requires)
        body = logic_in(function, self.context)
        self._check_calls(element, body, requires)
        return None if body is None else Knowledge(key, _name(element) or key, parameters, body, requires)

    # ---- circles

    def _refuse_circles(self, elements: dict[str, Element], tag: str, requirement: str) -> None:
        """6.2.2: a requirement that leads back would never be known."""
        leads = {
            key: [names.target(reference) for each in names.children(element, requirement) for reference in names.children(each, tag)]
            for key, element in elements.items()
        }
        done: set[str] = set()
        for start in elements:
            path: list[str] = []
            waiting = [(start, False)]
            while waiting:
                key, left = waiting.pop()
                if left:
                    path.pop()
                    done.add(key)
                elif key in path:
                    circle = " → ".join([*path[path.index(key) :], key])
                    self.context.problem(
                        elements[key], f"{named(elements[key])} requires itself: {circle}", "requirements without a circle"
                    )
                    return
                elif key in elements and key not in done:
                    path.append(key)
                    waiting.append((key, True))
                    waiting += [(other, False) for other in leads[key]]


def _name(element: Element) -> str:
    return " ".join((element.get("name") or "").split())


def _result(element: Element) -> str:
    """The name under which others see the value: that of its variable, else its own."""
    variable = names.child(element, "variable")
    return (_name(variable) if variable is not None else "") or _name(element) or str(element.get("id") or "")


def _variable_type(element: Element, context: Context) -> Type:
    variable = names.child(element, "variable")
    return type_of(variable, context) if variable is not None else ANY_TYPE


def _said(element: Element, tag: str) -> str:
    found = names.child(element, tag)
    return names.text(found).strip() if found is not None else ""


def _components(context: Context) -> frozenset[str]:
    found: set[str] = set()
    waiting, seen = list(context.types.values()), set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:  # types share their parts
            seen.add(id(each))
            found.update(name for name, _ in each.components)
            waiting += [part for _, part in each.components]
    return frozenset(found)
