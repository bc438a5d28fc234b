"""Ad hoc subprocess (10.3.5, 13.3.5): its activities have no required order; those without incoming flows are enabled.

The standard leaves it to performers which enabled activities run, and how often. Here each runs once: all of them, or those
that an expression names; at once, or one after the other in document order (`ordering`). Whenever an activity inside is done
the completionCondition is asked. Once it is true nothing more is enabled, flows included; what still runs is cancelled, or
ends by itself (`cancelRemainingInstances` false). Without one, or if it never is true, it is done when nothing is left.

`counters` of its scope: {todo: activities yet to begin, enough: whether the condition was true}.
"""

from __future__ import annotations

from typing import cast

from engine.bpmn.definition import AdHocConfig, Node, ProcessDefinition
from engine.core.activity import Activity
from engine.core.data import declare, leave_with
from engine.core.event_subprocesses import listen
from engine.core.reading import inputs_of, many_of, truth_of, typed_inputs
from engine.core.registry import behaviour_of, register
from engine.core.run import CannotGoOn, Run
from engine.core.state import Scope, Token


class AdHocSubprocess(Activity):
    holds_scope = True

    def begin(self, run: Run, token: Token, node: Node) -> None:
        config = cast(AdHocConfig, node.config)
        chosen = _chosen(run, token, node)
        inputs = typed_inputs(inputs_of(run, token, config.inputs))
        scope = run.add_scope(token.scope, token, node.id)
        scope.count(todo=chosen, enough=False)
        run.assign_here(scope, inputs, node.id)
        declare(run, scope, node)
        listen(run, scope)
        run.turns.append(lambda: _begin(run, scope, config))

    def inner_left(self, run: Run, owner: Token, token: Token) -> bool:
        scope, config = token.scope, cast(AdHocConfig, owner.node.config)
        if not behaviour_of(token.node).is_activity or not isinstance(config, AdHocConfig):
            return False
        if not scope.counters["enough"]:
            what = f"{owner.node.name or owner.element_id}: the completionCondition"
            if config.until is None or not truth_of(config.until, run.names(scope), what):
                return False
            scope.count(todo=[], enough=True)
        if config.cancel_remaining:
            run.withdraw_others(scope, token)
        run.record(scope, "element_left", token.element_id)
        run.end(token)
        return True

    def goes_on(self, run: Run, scope: Scope) -> bool:
        if not scope.counters["todo"]:
            return False
        assert scope.owner is not None  # the token of the subprocess
        config = cast(AdHocConfig, scope.owner.node.config)
        if config.sequential:  # else those that are to begin at once are still beginning
            run.turns.append(lambda: _begin(run, scope, config))
        return True

    def scope_emptied(self, run: Run, owner: Token, node: Node) -> None:
        leave_with(run, owner, node, cast(AdHocConfig, node.config).outputs)


def _begin(run: Run, scope: Scope, config: AdHocConfig) -> None:
    """The next activity begins; or all of them. None is left of none: then the subprocess is done."""
    run.turns.popleft()
    if scope.is_compensating:
        return
    if scope.alive and not scope.counters["todo"]:
        run.finish_if_done(scope)
    while scope.alive and (todo := scope.counters["todo"]):
        scope.count(**{**scope.counters, "todo": todo[1:]})
        run.begin_at(scope, todo[0])
        if config.sequential:
            return


def _chosen(run: Run, token: Token, node: Node) -> list[str]:
    """The activities to run: those that are enabled, or those of them that the expression names, in its order."""
    config = cast(AdHocConfig, node.config)
    enabled = _enabled(token.scope.definition, node)
    if config.activities is None:
        return list(enabled)
    chosen = many_of((config.activities,), run.names(token.scope), "activities")
    for element_id in chosen:
        if element_id not in enabled:
            what = f"expected ids of activities without incoming flows from {config.activities.text}, found {element_id!r}"
            raise CannotGoOn("expression", f"{node.name or node.id}: {what}")
    return list(chosen)


def _enabled(definition: ProcessDefinition, node: Node) -> tuple[str, ...]:
    """The activities inside to which no flow leads, in document order."""
    key = f"enabled in {node.id}"
    if key not in definition.derived:
        inside = (each for each in definition.nodes.values() if each.parent == node.id and not (each.incoming or each.for_compensation))
        definition.derived[key] = tuple(each.id for each in inside if behaviour_of(each).is_activity)
    found: tuple[str, ...] = definition.derived[key]
    return found


register("ad_hoc_subprocess", AdHocSubprocess())
