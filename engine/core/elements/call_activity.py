"""Call activity (10.3.6, 13.3.5): another process begins as an instance of its own, in the same case, and the token waits for
it. What it is given and gives back is mapped; without mappings nothing is, as its data would have to be mapped (10.4.1).

An error or escalation that nothing in the called process catches goes on to the border of the call activity (13.5.3). When the
activity is cancelled, the called instance is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from engine.bpmn.definition import CallConfig, Node, none_start
from engine.core.activity import Activity
from engine.core.beginning import begin_instance
from engine.core.data import outward
from engine.core.known import Call, Called, NeedsDefinition, NotCallable
from engine.core.reading import as_text, inputs_of, version_of
from engine.core.registry import register
from engine.core.run import CannotGoOn, Run
from engine.core.state import Instance, Names, Scope, Token
from engine.core.values import Variable, native, typed
from engine.expressions import Expression, ExpressionError

MAX_DEPTH = 50
"""Instances that call each other. A process that calls itself without end becomes an incident, not an endless transaction."""
MAX_BUSINESS_KEY = 255  # characters: it is part of an index key


class CallActivity(Activity):
    holds_scope = True

    def begin(self, run: Run, token: Token, node: Node) -> None:
        config, caller = cast(CallConfig, node.config), token.scope.instance
        local = inputs_of(run, token, config.locals)
        names = run.names(token.scope, local)
        called = _called(run, _call(token, node, names), node)
        if caller.depth >= MAX_DEPTH:
            what = f"{node.name or node.id}: expected at most {MAX_DEPTH} processes that call each other, found a call of one more"
            raise CannotGoOn("too_deep", what)
        start = none_start(called.definition)
        if start is None:
            what = f"{node.name or node.id}: expected a process with a none start event, found {called.definition.key}, which has none"
            raise CannotGoOn("not_callable", what)
        given = _given(config, token.scope, names, local, node)
        instance = Instance(run.new_id(), called.id, called.definition, _business_key(token, node, names), caller.started_by, stored=False)
        begin_instance(run, run.open_process(instance, token), start, given, "call")

    def returned(self, run: Run, owner: Token, node: Node, scope: Scope) -> None:
        config = cast(CallConfig, node.config)
        try:
            values = outward(run, owner.scope, node, _given_back(run, owner, node, config, scope))
        except (ExpressionError, CannotGoOn) as error:
            run.fail(owner, error, again=True)  # a retry calls again, as that of any other activity does its work again
            return
        run.assign(owner.scope, values, node.id)
        if node.id in owner.scope.definition.compensable:
            owner.results = values
        run.leave(owner)


register("call_activity", CallActivity())


# ---- which process


def _call(token: Token, node: Node, names: Names) -> Call:
    config = cast(CallConfig, node.config)
    key = as_text(config.process.evaluate(names))
    if not key:
        raise CannotGoOn("not_callable", f"{node.name or node.id}: expected the key of a process, found nothing from {config.process.text}")
    match config.binding:
        case "version":
            return Call(key, "version", version_of(config.version, names, node, "not_callable"))
        case "tag":
            return Call(key, "tag", tag=as_text(config.tag.evaluate(names)) if config.tag is not None else "")
        case "deployment":
            return Call(key, "deployment", by=token.scope.instance.definition_id)
    return Call(key)


def _called(run: Run, call: Call, node: Node) -> Called:
    found = run.known.calls.get(call)
    match found:
        case Called():
            return found
        case NotCallable(why):
            raise CannotGoOn("not_callable", f"{node.name or node.id}: {why}")
    raise NeedsDefinition(call)


def _business_key(token: Token, node: Node, names: Names) -> str | None:
    config = cast(CallConfig, node.config)
    if config.business_key is None:
        return token.scope.instance.business_key
    key = as_text(config.business_key.evaluate(names))
    if len(key) > MAX_BUSINESS_KEY or not key.isprintable():
        what = f"expected a business key of at most {MAX_BUSINESS_KEY} characters without control characters"
        raise CannotGoOn("expression", f"{node.name or node.id}: {what}, found {key!r:.300}")
    return key or None


# ---- what goes in, and what comes back


def _given(config: CallConfig, scope: Scope, names: Names, local: Mapping[str, Any], node: Node) -> dict[str, Variable]:
    """The variables that the called process begins with."""
    own = {name: _typed(value, f"input {name}", node) for name, value in local.items()}
    seen = {**scope.visible(), **own}
    match config.passes:
        case "all":
            given = _read(seen)
        case "local":
            given = own if config.locals else _read(scope.variables)
        case _:
            given = {}
    given.update(_mapped(config.inputs, seen, names, "input", node))
    return given


def _given_back(run: Run, owner: Token, node: Node, config: CallConfig, scope: Scope) -> dict[str, Variable]:
    """The variables that the caller gets from a process that is complete, whose scope is given."""
    values = _read(scope.variables) if config.returns_all else {}
    values.update(_mapped(config.results, scope.variables, run.names(scope), "result", node))
    if config.outputs:
        local = {name: native(variable) for name, variable in {**scope.variables, **values}.items()}
        names = run.names(owner.scope, local)
        values.update({name: _typed(expression.evaluate(names), f"output {name}", node) for name, expression in config.outputs})
    return values


def _mapped(
    mappings: Iterable[tuple[str, Expression | str]], variables: Mapping[str, Variable], names: Names, what: str, node: Node
) -> dict[str, Variable]:
    """A variable by its name keeps its type; one that is not there is null."""
    found = {}
    for target, source in mappings:
        if isinstance(source, str):
            found.update(_read({target: variables.get(source) or Variable("null", None)}))
        else:
            found[target] = _typed(source.evaluate(names), f"{what} {target}", node)
    return found


def _read(variables: Mapping[str, Variable]) -> dict[str, Variable]:
    """Their values too: what was left in the database is asked for."""
    return {name: Variable(each.type, each.value) for name, each in variables.items()}


def _typed(value: Any, what: str, node: Node) -> Variable:
    try:
        return typed(value)
    except TypeError as error:
        raise CannotGoOn("expression", f"{what} of {node.name or node.id}: {error}") from error
