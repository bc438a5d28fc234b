"""What a deployed decision is, once read: frozen, checked, compiled. The reader makes it, `evaluate` runs it. Nothing here knows XML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.bpmn.definition import Problem
from engine.expressions import Expression

ORDERED = ("PRIORITY", "OUTPUT ORDER")
SINGLE_HIT = ("UNIQUE", "FIRST", "PRIORITY", "ANY")
HIT_POLICIES = (*SINGLE_HIT, "COLLECT", "RULE ORDER", "OUTPUT ORDER")
AGGREGATIONS = ("SUM", "MIN", "MAX", "COUNT")


@dataclass(frozen=True, slots=True)
class Type:
    """What a value must be (7.3.2). `base`: one of types.KINDS, or None for anything. `allowed`: unary tests, with their text."""

    name: str
    base: str | None = None
    is_list: bool = False
    allowed: Expression | None = None
    components: tuple[tuple[str, Type], ...] = ()


ANY_TYPE = Type("Any")


@dataclass(frozen=True, slots=True)
class Input:
    """An input clause (8.3.2). `variable`: the name under which the tests of a column see its value, besides `?`."""

    id: str
    label: str
    expression: Expression | None  # None: the value is that of every test: nothing
    type: Type = ANY_TYPE
    allowed: Expression | None = None  # inputValues
    allowed_text: str = ""
    variable: str = "cellInput"


@dataclass(frozen=True, slots=True)
class Output:
    """An output clause (8.3.3). `order`: its outputValues as a list, from the most important down, where the hit policy asks for it."""

    id: str
    name: str  # empty only where it is the only one
    label: str
    type: Type = ANY_TYPE
    order: Expression | None = None
    allowed: Expression | None = None
    allowed_text: str = ""
    default: Expression | None = None


@dataclass(frozen=True, slots=True)
class Test:
    """One cell of an input column. `expression` None: it holds for everything (`-`, or nothing).

    `unary`: unary tests, which see the value as `?`; else an expression that must be true.
    """

    text: str
    expression: Expression | None = None
    unary: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule (8.3.4). `number` counts from 1, in the order of the file."""

    number: int
    id: str
    tests: tuple[Test, ...]
    outputs: tuple[Expression | None, ...]  # None: null
    annotations: tuple[str, ...] = ()
    line: int | None = None


@dataclass(frozen=True, slots=True)
class DecisionTable:
    """8.3. `aggregation` only with COLLECT."""

    hit_policy: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    rules: tuple[Rule, ...]
    aggregation: str | None = None
    annotations: tuple[str, ...] = ()  # the names of the annotation columns

    @property
    def single(self) -> bool:
        return self.hit_policy in SINGLE_HIT

    @property
    def has_defaults(self) -> bool:
        return any(output.default is not None for output in self.outputs)


@dataclass(frozen=True, slots=True)
class LiteralExpression:
    """7.3.1."""

    expression: Expression
    type: Type = ANY_TYPE


@dataclass(frozen=True, slots=True)
class BoxedContext:
    """7.3.4: entries in order, each sees those before it; `result` None: the value is the context itself."""

    entries: tuple[tuple[str, Type, Logic], ...]
    result: Logic | None = None


@dataclass(frozen=True, slots=True)
class BoxedList:
    """7.3.6."""

    items: tuple[Logic, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """7.3.5: a list of contexts with the same entries."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Logic, ...], ...]


@dataclass(frozen=True, slots=True)
class Invocation:
    """7.3.3: the function of a business knowledge model, by its name, with what its parameters are bound to."""

    function: str
    bindings: tuple[tuple[str, Logic], ...]


Logic = DecisionTable | LiteralExpression | BoxedContext | BoxedList | Relation | Invocation


@dataclass(frozen=True, slots=True)
class Knowledge:
    """A business knowledge model (6.3.9): a function. `requires`: ids of others that its body may call."""

    id: str
    name: str
    parameters: tuple[tuple[str, Type], ...]
    body: Logic
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InputData:
    """6.3.11: what comes from outside, by its name."""

    id: str
    name: str
    type: Type = ANY_TYPE


@dataclass(frozen=True, slots=True)
class Decision:
    """6.3.7. `result`: the name of the variable that its value has for those who require it."""

    key: str
    name: str
    result: str
    type: Type
    logic: Logic
    decisions: tuple[str, ...] = ()  # keys of the required ones, in order
    inputs: tuple[str, ...] = ()  # ids of the required input data
    knowledge: tuple[str, ...] = ()  # ids of the required business knowledge models
    documentation: str = ""
    question: str = ""
    version_tag: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class DecisionGraph:
    """The decisions of one file, and what they require of each other. No requirement leads in a circle."""

    decisions: Mapping[str, Decision]
    inputs: Mapping[str, InputData] = field(default_factory=dict)
    knowledge: Mapping[str, Knowledge] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()

    def needed(self, key: str) -> tuple[str, ...]:
        """The decision and all that it requires, each once, what is required first."""
        found: dict[str, None] = {}
        waiting: list[tuple[str, bool]] = [(key, False)]
        while waiting:
            each, ready = waiting.pop()
            if ready:
                found[each] = None
            elif each not in found:
                waiting.append((each, True))
                waiting += [(other, False) for other in reversed(self.decisions[each].decisions)]
        return tuple(found)
