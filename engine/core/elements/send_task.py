"""Send task (10.3.3.2, 13.3.3): a message into the outbox, and on; or bound as a service task is."""

from engine.bpmn.definition import MessageConfig, Node
from engine.core.deliveries import send
from engine.core.elements.service_task import ServiceTask
from engine.core.registry import register
from engine.core.run import Run
from engine.core.state import Token


class SendTask(ServiceTask):
    def enter(self, run: Run, token: Token, node: Node) -> None:
        if isinstance(node.config, MessageConfig):
            send(run, token, node, node.config)
            run.leave(token)
            return
        super().enter(run, token, node)


register("send_task", SendTask())
