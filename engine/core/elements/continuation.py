"""What `asyncBefore` and `asyncAfter` ask for: the step ends here, and a job goes on in a transaction of its own."""

from typing import cast

from engine.bpmn.definition import ContinuationConfig, Node
from engine.core.effects import NewJob
from engine.core.reading import priority_of_work, retries_of_work
from engine.core.registry import Behaviour, register
from engine.core.run import Run
from engine.core.snapshot import Continued
from engine.core.state import Token


class Continuation(Behaviour):
    def enter(self, run: Run, token: Token, node: Node) -> None:
        config = cast(ContinuationConfig, node.config)
        retry, attempts = retries_of_work(run, token, config.retry, config.max_attempts)
        job = NewJob(
            run.new_id(),
            "continue",
            "",
            token.id,
            node.id,
            priority=priority_of_work(run, token, config.priority),
            max_attempts=attempts,
            retry=retry,
            lock_first=True,
        )
        token.wait_for(run.effects.jobs, job)
        run.record(token.scope, "job_created", node.id, {"item_id": str(job.id), "kind": "continue"})

    def continued(self, run: Run, token: Token, node: Node, trigger: Continued) -> None:
        run.record(token.scope, "job_completed", node.id, {**trigger.detail, "kind": "continue"})
        run.leave(token)


register("continuation", Continuation())
