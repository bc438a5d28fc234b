"""Embedded subprocess (10.3.5, 13.3.4): a scope of its own, done when its last token is gone."""

from engine.bpmn.definition import Node, SubprocessConfig
from engine.core.activity import Activity
from engine.core.data import declare
from engine.core.event_subprocesses import listen
from engine.core.reading import inputs_of, typed_inputs
from engine.core.registry import register
from engine.core.run import CannotGoOn, Run
from engine.core.state import Token


class Subprocess(Activity):
    holds_scope = True

    def begin(self, run: Run, token: Token, node: Node) -> None:
        starts = token.scope.definition.starts.get(node.id, ())
        if len(starts) != 1:
            raise CannotGoOn("unsupported", f"subprocess {node.name or node.id}: expected one start event, found {len(starts)}")
        config = node.config if isinstance(node.config, SubprocessConfig) else SubprocessConfig()
        inputs = typed_inputs(inputs_of(run, token, config.inputs))
        scope = run.add_scope(token.scope, token, node.id)
        run.assign_here(scope, inputs, node.id)
        declare(run, scope, node)
        listen(run, scope)
        run.begin_at(scope, starts[0])

    def scope_emptied(self, run: Run, owner: Token, node: Node) -> None:
        run.leave(owner)


register("subprocess", Subprocess())
