"""Embedded subprocess (10.3.5, 13.3.4): a scope of its own, done when its last token is gone.

Without a start event all begin in it that no flow leads to (10.5.2).
"""

from engine.bpmn.definition import Node, SubprocessConfig
from engine.core.activity import Activity
from engine.core.data import declare, leave_with
from engine.core.event_subprocesses import listen
from engine.core.reading import inputs_of, typed_inputs
from engine.core.registry import register
from engine.core.run import Run
from engine.core.state import Token


class Subprocess(Activity):
    holds_scope = True

    def begin(self, run: Run, token: Token, node: Node) -> None:
        nodes = token.scope.definition.nodes
        starts = [nodes[key] for key in token.scope.definition.starts.get(node.id, ())]
        config = node.config if isinstance(node.config, SubprocessConfig) else SubprocessConfig()
        if not starts:  # nothing lies in it
            leave_with(run, token, node, config.outputs)
            return
        inputs = typed_inputs(inputs_of(run, token, config.inputs))
        scope = run.add_scope(token.scope, token, node.id)
        run.assign_here(scope, inputs, node.id)
        declare(run, scope, node)
        listen(run, scope)
        if starts[0].kind == "start_event":
            run.begin_at(scope, starts[0].id)
            return
        begun = [(run.spawn(scope, start.id), start) for start in starts]  # first all: one that ends must not end the scope
        for inner, start in begun:
            if inner.alive:
                run.enter(inner, start)

    def scope_emptied(self, run: Run, owner: Token, node: Node) -> None:
        leave_with(run, owner, node, node.config.outputs if isinstance(node.config, SubprocessConfig) else ())


register("subprocess", Subprocess())
