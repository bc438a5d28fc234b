"""Data objects and data outputs (10.4): what a scope has for itself, and where parts of a result go."""

from __future__ import annotations

from collections.abc import Mapping

from engine.bpmn.definition import Node
from engine.core.run import CannotGoOn, Run
from engine.core.state import Scope
from engine.core.values import Variable, native, typed


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
