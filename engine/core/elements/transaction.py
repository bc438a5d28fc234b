"""Transaction (10.3.5, 13.3.4): a subprocess that is undone as a whole when it is cancelled. An error leaves it as any other (a hazard)."""

from engine.bpmn.definition import Node
from engine.core.effects import InvariantBroken
from engine.core.elements.subprocess import Subprocess
from engine.core.registry import register
from engine.core.run import Run
from engine.core.state import Token


class Transaction(Subprocess):
    def scope_emptied(self, run: Run, owner: Token, node: Node) -> None:
        """It completed; or it was cancelled, all of it is undone, and its token goes on at the cancel boundary event."""
        if owner.ended is None or not owner.ended.is_compensating:
            super().scope_emptied(run, owner, node)
            return
        nodes = owner.scope.definition.nodes
        event = next((nodes[key] for key in node.attached if nodes[key].config.cancel), None)
        if event is None:
            raise InvariantBroken(f"transaction {node.id}: expected a cancel boundary event, found none")
        run.record(owner.scope, "element_left", node.id, {"cancelled": True})
        run.shed(owner, all_leaves=True)
        run.emerge(owner, event)


register("transaction", Transaction())
