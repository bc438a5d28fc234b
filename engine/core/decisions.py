"""Decisions called by tasks (10.3.3.4): made at once, in the same step; each is told in the history, with what it went by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.bpmn.definition import DecisionConfig, Node, ProcessDefinition
from engine.core.data import outward
from engine.core.known import Decidable, DecisionCall, NeedsDecision, NotDecidable
from engine.core.reading import as_text, inputs_of, version_of
from engine.core.run import CannotGoOn, Run
from engine.core.state import Names, Token
from engine.core.values import Variable, typed
from engine.dmn.errors import DecisionError
from engine.dmn.evaluate import Evaluated, Outcome, evaluate
from engine.dmn.types import told
from engine.expressions import ExpressionError
from engine.expressions.feel.outward import as_variable

OUTCOME = "decisionResult"  # what output mappings call the rows of the outcome


def decide(run: Run, token: Token, node: Node, config: DecisionConfig) -> None:
    """Make the decision, tell it, and set what becomes of its outcome."""
    local = inputs_of(run, token, config.inputs)
    names = run.names(token.scope, local)
    decidable = _decidable(run, _call(token, node, config, names), node, token.scope.definition)
    try:
        outcome = evaluate(decidable.graph, decidable.key, names)
    except DecisionError as error:
        raise CannotGoOn("decision", f"{node.name or node.id}: {error}") from error
    for made in outcome.made:
        run.record(token.scope, "decision_evaluated", node.id, _told(made, decidable))
    values = outward(run, token.scope, node, _mapped(run, token, node, config, outcome, local))
    run.assign(token.scope, values, node.id)
    if node.id in token.scope.definition.compensable:
        token.results = values


def calls_ahead(definition: ProcessDefinition) -> Iterator[DecisionCall]:
    """The decisions that a process names outright in their newest versions: found together, one look serves a step that makes several."""
    for node in definition.nodes.values():
        config = node.config
        if isinstance(config, DecisionConfig) and config.binding == "latest" and config.decision.is_constant:
            yield DecisionCall(as_text(config.decision.evaluate({})))


# ---- which decision


def _call(token: Token, node: Node, config: DecisionConfig, names: Names) -> DecisionCall:
    key = as_text(config.decision.evaluate(names))
    if not key:
        raise CannotGoOn(
            "no_decision", f"{node.name or node.id}: expected the key of a decision, found nothing from {config.decision.text}"
        )
    match config.binding:
        case "version":
            return DecisionCall(key, "version", version=version_of(config.version, names, node, "no_decision"))
        case "tag":
            return DecisionCall(key, "tag", tag=as_text(config.tag.evaluate(names)) if config.tag is not None else "")
        case "deployment":
            return DecisionCall(key, "deployment", by=token.scope.instance.definition_id)
    return DecisionCall(key)


def _decidable(run: Run, call: DecisionCall, node: Node, definition: ProcessDefinition) -> Decidable:
    found = run.known.decisions.get(call)
    match found:
        case Decidable():
            return found
        case NotDecidable(why):
            raise CannotGoOn("no_decision", f"{node.name or node.id}: {why}")
    raise NeedsDecision(call, calls_ahead(definition))


# ---- what becomes of the outcome


def _mapped(run: Run, token: Token, node: Node, config: DecisionConfig, outcome: Outcome, local: Mapping[str, Any]) -> dict[str, Variable]:
    """The variables that the task sets."""
    if config.mapper == "variables":
        values = _as_variables(config, outcome)
    else:
        value = _result(config.mapper, outcome, node)
        values = {config.result_variable: value} if config.result_variable else {}
    kept = {name: variable(value, f"the result of {node.name or node.id}") for name, value in values.items()} if config.keeps else {}
    if config.outputs:
        seen = run.names(token.scope, {**local, **values, OUTCOME: [dict(row) for row in outcome.rows]})
        for name, expression in config.outputs:
            kept[name] = variable(expression.evaluate(seen), f"output {name} of {node.name or node.id}")
    return kept


def _as_variables(config: DecisionConfig, outcome: Outcome) -> Mapping[str, Any]:
    """As Flowable has it: each output is a variable, several rows are a list under the key of the decision."""
    if len(outcome.rows) == 1:
        return {name or config.result_variable: value for name, value in outcome.rows[0].items() if name or config.result_variable}
    return {config.result_variable: [dict(row) for row in outcome.rows]}


def _result(mapper: str, outcome: Outcome, node: Node) -> Any:
    rows = outcome.rows
    match mapper:
        case "value":
            return outcome.value
        case "singleEntry":
            _at_most_one_row(mapper, outcome, node)
            return _one_entry(mapper, rows[0], node) if rows else None
        case "singleResult":
            _at_most_one_row(mapper, outcome, node)
            return dict(rows[0]) if rows else None
        case "collectEntries":
            return [_one_entry(mapper, row, node) for row in rows]
    return [dict(row) for row in rows]


def _at_most_one_row(mapper: str, outcome: Outcome, node: Node) -> None:
    if len(outcome.rows) > 1:
        rules = ", ".join(str(rule.number) for rule, _ in outcome.made[-1].rules[:20])
        what = f"expected one result for {mapper}, found {len(outcome.rows)} from the rules {rules}"
        raise CannotGoOn("decision", f"{node.name or node.id}: {what}")


def _one_entry(mapper: str, row: Mapping[str, Any], node: Node) -> Any:
    if len(row) != 1:
        raise CannotGoOn("decision", f"{node.name or node.id}: expected one output for {mapper}, found {', '.join(row)}")
    return next(iter(row.values()))


def variable(value: Any, what: str) -> Variable:
    """A value of FEEL as a variable: whole numbers are integers, and what JSON has no kind for is text as FEEL writes it."""
    try:
        return typed(as_variable(value))
    except (TypeError, ExpressionError) as error:
        raise CannotGoOn("expression", f"{what}: {error}") from error


# ---- history


def _told(made: Evaluated, decidable: Decidable) -> dict[str, Any]:
    """One decision as its event tells it. `rules`: those that matched, by number and id, with their outputs."""
    row_id, version = decidable.members[made.decision.key]
    return {
        "item_id": str(row_id),
        "key": made.decision.key,
        "name": made.decision.name,
        "version": version,
        "inputs": [{"name": name, "value": _plain(value)} for name, value in made.inputs],
        "rules": [
            {"number": rule.number, "id": rule.id, "outputs": {name: _plain(value) for name, value in outputs.items()}}
            for rule, outputs in made.rules
        ],
        "result": _plain(made.value),
    }


def _plain(value: Any) -> Any:
    """As JSON; what no variable can hold, such as a range on the way, in words."""
    try:
        return typed(as_variable(value)).value
    except (TypeError, ExpressionError):
        return told(value)
