"""`evaluate(graph, key, variables) -> Outcome`: a decision, and before it all that it requires (DMN 1.3, 6.3 and 8.2). Pure.

Every expression sees all variables; besides, the values of required decisions by the names of their variables, by their ids, and,
as other engines give them, by the names of their outputs. What cannot be decided raises DecisionError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.dmn.definition import (
    BoxedContext,
    BoxedList,
    Decision,
    DecisionGraph,
    DecisionTable,
    Input,
    Invocation,
    Knowledge,
    LiteralExpression,
    Logic,
    Relation,
    Rule,
    Test,
)
from engine.dmn.errors import DecisionError
from engine.dmn.hits import Chosen, Hit, by_default, choose
from engine.dmn.types import coerce, told
from engine.expressions import Expression, ExpressionError, LimitExceeded
from engine.expressions.clock import CLOCK
from engine.expressions.feel.function import Builtin
from engine.expressions.limits import STEPS

MAX_CALLS = 1_000  # of business knowledge models in one evaluation
MAX_STEPS = 1_000_000  # of all its expressions together; each takes one at least
TOO_MUCH = f"expected a decision of at most {MAX_STEPS:,} steps, found one that needs more"


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One decision as it was made. `inputs`: (label, value), `rules`: those that matched and counted, with what they gave."""

    decision: Decision
    inputs: tuple[tuple[str, Any], ...]
    rules: tuple[tuple[Rule, Mapping[str, Any]], ...]
    value: Any
    rows: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a decision: `value` is that of FEEL; `rows` are output name -> value, one a hit. `made`: all decisions, in order."""

    value: Any
    rows: tuple[Mapping[str, Any], ...]
    made: tuple[Evaluated, ...]


def evaluate(graph: DecisionGraph, key: str, variables: Mapping[str, Any]) -> Outcome:
    """The decision `key` of the graph over native values. Raises DecisionError."""
    run = _Run(graph, _Seen(variables))
    for each in graph.needed(key):
        run.decide(graph.decisions[each])
    last = run.made[-1]
    return Outcome(last.value, last.rows, tuple(run.made))


class _Seen(Mapping[str, Any]):
    """What expressions see: names of this evaluation before the variables of the case."""

    __slots__ = ("local", "outer")

    def __init__(self, outer: Mapping[str, Any], local: Mapping[str, Any] | None = None) -> None:
        self.outer = outer
        self.local = dict(local or {})

    def __getitem__(self, name: str) -> Any:
        return self.local[name] if name in self.local else self.outer[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.local
        yield from (name for name in self.outer if name not in self.local)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self.local or name in self.outer


@dataclass(slots=True)
class _Run:
    graph: DecisionGraph
    seen: _Seen
    made: list[Evaluated] = field(default_factory=list)
    calls: int = 0
    steps: int = MAX_STEPS

    def decide(self, decision: Decision) -> None:
        """Make one decision; what it requires has been made."""
        where = f"decision {decision.name}"
        for key in decision.inputs:
            self._input_data(key, where)
        names = self._functions(decision.knowledge, self.seen, where)
        logic = decision.logic
        if isinstance(logic, DecisionTable):
            inputs, chosen = self._table(logic, names, where)
            made = Evaluated(decision, inputs, tuple((hit.rule, hit.outputs) for hit in chosen.hits), chosen.value, chosen.rows)
        else:
            value = coerce(self._value(logic, names, where), decision.type, where, names, self)
            read = tuple((name, self.seen[name]) for name in self._names_read(decision) if name in self.seen)
            made = Evaluated(decision, read, (), value, ({decision.result: value},))
        self.made.append(made)
        self._publish(decision, made)

    def _input_data(self, key: str, where: str) -> None:
        """6.3.11: a typed input data is brought to its type, for all that see it."""
        data = self.graph.inputs[key]
        if data.name in self.seen and (data.type.base is not None or data.type.allowed is not None):
            self.seen.local[data.name] = coerce(self.seen[data.name], data.type, f"{where}, input data {data.name}", self.seen, self)

    def _names_read(self, decision: Decision) -> list[str]:
        required = [self.graph.decisions[key].result for key in decision.decisions] + [
            self.graph.inputs[key].name for key in decision.inputs
        ]
        if required or not isinstance(decision.logic, LiteralExpression):
            return required
        return sorted(decision.logic.expression.names)

    def _publish(self, decision: Decision, made: Evaluated) -> None:
        """For those who require it. Its own names go before those of its outputs."""
        outputs: dict[str, Any] = {}
        if isinstance(decision.logic, DecisionTable) and decision.logic.aggregation is None:
            for output in decision.logic.outputs:
                values = [row[output.name] for row in made.rows]
                if output.name:
                    outputs[output.name] = values if not decision.logic.single else values[0] if values else None
        self.seen.local.update({**outputs, decision.key: made.value, decision.name: made.value, decision.result: made.value})

    # ---- tables

    def _table(self, table: DecisionTable, names: _Seen, where: str) -> tuple[tuple[tuple[str, Any], ...], Chosen]:
        """8.2: the inputs, then the rules that match, then what the hit policy makes of them."""
        values = [self._input(clause, place, names, where) for place, clause in enumerate(table.inputs, start=1)]
        columns = [_Seen(names, {clause.variable: value, "?": value}) for clause, value in zip(table.inputs, values, strict=True)]
        hits: list[Hit] = []
        for rule in table.rules:
            if all(self._holds(test, column, f"{where}, rule {rule.number}") for test, column in zip(rule.tests, columns, strict=True)):
                hits.append(Hit(rule, self._outputs(table, rule, names, where)))
                if table.hit_policy == "FIRST":
                    break
        if not hits and table.has_defaults:
            chosen = by_default(table, self._defaults(table, names, where))
        else:
            orders = [self._order(output.order, names, where) for output in table.outputs]
            chosen = choose(table, hits, orders, where, self)
        labels = [clause.label or clause.id or f"input {place}" for place, clause in enumerate(table.inputs, start=1)]
        return tuple(zip(labels, values, strict=True)), chosen

    def _input(self, clause: Input, place: int, names: _Seen, where: str) -> Any:
        at = f"{where}, input {clause.label or place}"
        if clause.expression is None:
            return None
        value = coerce(self.evaluated(clause.expression, names, at), clause.type, at, names, self)
        if value is not None and clause.allowed is not None and self.evaluated(clause.allowed, _Seen(names, {"?": value}), at) is not True:
            raise DecisionError("type", f"{at}: expected one of {clause.allowed_text}, found {told(value)}")
        return value

    def _outputs(self, table: DecisionTable, rule: Rule, names: _Seen, where: str) -> dict[str, Any]:
        return {
            output.name: self._output(table, place, expression, names, f"{where}, rule {rule.number}")
            for place, (output, expression) in enumerate(zip(table.outputs, rule.outputs, strict=True))
        }

    def _defaults(self, table: DecisionTable, names: _Seen, where: str) -> dict[str, Any]:
        return {
            output.name: self._output(table, place, output.default, names, f"{where}, the default")
            for place, output in enumerate(table.outputs)
        }

    def _output(self, table: DecisionTable, place: int, expression: Expression | None, names: _Seen, where: str) -> Any:
        output = table.outputs[place]
        at = f"{where}, output {output.name or output.label or place + 1}"
        value = None if expression is None else coerce(self.evaluated(expression, names, at), output.type, at, names, self)
        if value is not None and output.allowed is not None and self.evaluated(output.allowed, _Seen(names, {"?": value}), at) is not True:
            raise DecisionError("type", f"{at}: expected one of {output.allowed_text}, found {told(value)}")
        return value

    # ---- other logic

    def _value(self, logic: Logic, names: _Seen, where: str) -> Any:
        match logic:
            case LiteralExpression(expression, type):
                return coerce(self.evaluated(expression, names, where), type, where, names, self)
            case DecisionTable():
                return self._table(logic, names, where)[1].value
            case BoxedContext():
                return self._context(logic, names, where)
            case BoxedList(items):
                return [self._value(item, names, where) for item in items]
            case Relation(columns, rows):
                return [{name: self._value(cell, names, where) for name, cell in zip(columns, row, strict=True)} for row in rows]
            case Invocation(function, bindings):
                return self._invoke(function, {name: self._value(each, names, where) for name, each in bindings}, where)

    def _context(self, context: BoxedContext, names: _Seen, where: str) -> Any:
        """7.3.4: each entry sees those before it."""
        inner = _Seen(names)
        for name, type, logic in context.entries:
            inner.local[name] = coerce(self._value(logic, inner, where), type, f"{where}, {name}", inner, self)
        return dict(inner.local) if context.result is None else self._value(context.result, inner, where)

    # ---- business knowledge models

    def _functions(self, keys: tuple[str, ...], names: _Seen, where: str) -> _Seen:
        """The functions that an expression may call by name (6.3.9)."""
        models = [self.graph.knowledge[key] for key in keys]
        return _Seen(names, {model.name: self._function(model, where) for model in models}) if models else names

    def _function(self, model: Knowledge, where: str) -> Builtin:
        """A business knowledge model as FEEL calls it: by its name, with arguments in order or by their names."""
        return Builtin(
            model.name,
            (tuple(name for name, _ in model.parameters),),
            False,
            lambda scope, *arguments: self.call(model, list(arguments), where),
        )

    def _invoke(self, function: str, given: Mapping[str, Any], where: str) -> Any:
        """7.3.3: its parameters are all that its body sees of the call."""
        model = next(each for each in self.graph.knowledge.values() if each.name == function)
        unknown = sorted(set(given) - {name for name, _ in model.parameters})
        if unknown:
            raise DecisionError("expression", f"{where}: expected a parameter of {model.name}, found {', '.join(unknown)}")
        return self.call(model, [given.get(name) for name, _ in model.parameters], where)

    def call(self, model: Knowledge, given: list[Any], where: str) -> Any:
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise DecisionError("expression", f"{where}: expected at most {MAX_CALLS:,} calls of business knowledge models, found more")
        at = f"{where}, {model.name}"
        values = {
            name: coerce(value, type, f"{at}, parameter {name}", self.seen, self)
            for (name, type), value in zip(model.parameters, given, strict=True)
        }
        clock = {CLOCK: self.seen[CLOCK]} if CLOCK in self.seen else {}
        return self._value(model.body, self._functions(model.requires, _Seen(clock, values), at), at)

    # ---- expressions

    def _holds(self, test: Test, column: _Seen, where: str) -> bool:
        """Whether a cell holds for the value of its column. Nothing but true is true: null is not."""
        return test.expression is None or self.evaluated(test.expression, column, where) is True

    def _order(self, expression: Expression | None, names: _Seen, where: str) -> list[Any] | None:
        return None if expression is None else list(self.evaluated(expression, names, where))

    def evaluated(self, expression: Expression, names: Mapping[str, Any], where: str) -> Any:
        """What one expression takes is taken from what the whole evaluation may."""
        try:
            value, taken = expression.measured(names, self.steps)
        except ExpressionError as error:
            why = TOO_MUCH if isinstance(error, LimitExceeded) and self.steps < STEPS else error
            raise DecisionError("expression", f"{where}: {why}") from error
        self.pay(1 + taken, where)
        return value

    def pay(self, steps: int, where: str) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise DecisionError("expression", f"{where}: {TOO_MUCH}")
