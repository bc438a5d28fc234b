"""Script task (10.3.3.6, 13.3.3): an expression whose value becomes a variable, at once; or bound as a service task is."""

from engine.bpmn.definition import Node, ScriptConfig
from engine.core.data import outward
from engine.core.elements.service_task import ServiceTask
from engine.core.reading import inputs_of
from engine.core.registry import register
from engine.core.run import CannotGoOn, Run
from engine.core.state import Token
from engine.core.values import typed


class ScriptTask(ServiceTask):
    def enter(self, run: Run, token: Token, node: Node) -> None:
        if not isinstance(node.config, ScriptConfig):
            super().enter(run, token, node)
            return
        names = run.names(token.scope, inputs_of(run, token, node.config.inputs))
        try:
            value = typed(node.config.expression.evaluate(names))
        except TypeError as error:
            raise CannotGoOn("expression", f"the script of {node.name or node.id}: {error}") from error
        run.assign(token.scope, outward(run, token.scope, node, {node.config.result_variable: value}), node.id)
        run.leave(token)


register("script_task", ScriptTask())
