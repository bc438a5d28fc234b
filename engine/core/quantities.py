"""Activities that several tokens begin together (startQuantity, 10.3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.bpmn.definition import Node
from engine.core.state import Token

if TYPE_CHECKING:
    from engine.core.run import Run


def gather(run: Run, token: Token, node: Node) -> bool:
    """Whether enough tokens have come for the activity; they become one."""
    others = [each for each in token.scope.tokens if each.status == "joining" and each.element_id == node.id]
    others = others[: node.start_quantity - 1]
    if len(others) < node.start_quantity - 1:
        run.shed(token)
        token.status = "joining"
        return False
    run.record(token.scope, "join_passed", node.id, {"flows": [each.flow_id for each in (*others, token)]})
    run.absorb(others)
    return True
