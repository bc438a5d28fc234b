"""Data objects and data outputs (10.4): what a scope has for itself, and where parts of a result go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.bpmn.definition import Node
from engine.core.run import CannotGoOn, Run
from engine.core.state import Scope, Token
from engine.core.values import Variable, native, typed
from engine.expressions import Expression, ExpressionError


def declare(run: Run, scope: Scope, node: Node) -> None:
    """A subprocess begins: its data objects exist, and hold nothing yet. So what is set in it stays in it."""
    run.assign_here(scope, {name: typed(None) for name in node.locals if name not in scope.variables}, node.id)


def outward(run: Run, scope: Scope, node: Node, values: Mapping[str, Variable]) -> Mapping[str, Variable]:
    """A result after its data outputs went to their targets. An output that the result does not have leaves its target alone."""
    if not node.data_outputs:
        return values
    names = run.names(scope, {name: native(variable) for name, variable in values.items()})
    kept = dict(values)
    for output in node.data_outputs:
        if not all(name in values for name in output.sources):
            continue
        for name in output.sources:
            kept.pop(name, None)
    for output in node.data_outputs:
        if all(name in values for name in output.sources):
            try:
                kept[output.target] = typed(output.expression.evaluate(names))
            except TypeError as error:
                raise CannotGoOn("expression", f"data output of {node.name or node.id}: {error}") from error
    return kept


def made(
    run: Run, scope: Scope, node: Node, outputs: Iterable[tuple[str, Expression]], result: Mapping[str, Variable]
) -> dict[str, Variable]:
    """What output mappings make of a result, which they see before the variables of the scope."""
    if not outputs:
        return {}
    names = run.names(scope, {name: native(variable) for name, variable in result.items()})
    kept = {}
    for name, expression in outputs:
        try:
            kept[name] = typed(expression.evaluate(names))
        except TypeError as error:
            raise CannotGoOn("expression", f"output {name} of {node.name or node.id}: {error}") from error
    return kept


def leave_with(run: Run, owner: Token, node: Node, outputs: Iterable[tuple[str, Expression]]) -> None:
    """A subprocess is done: what its outputs make of its own variables is set around it."""
    try:
        values = made(run, owner.ended or owner.scope, node, outputs, {})
    except (ExpressionError, CannotGoOn) as error:
        run.fail(owner, error, again=True)  # a retry begins it again: its own variables are gone
        return
    run.assign(owner.scope, values, node.id)
    run.leave(owner)
