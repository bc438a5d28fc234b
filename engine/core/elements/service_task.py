"""Service task (10.3.3.1, 13.3.3): a job for a handler, an external task for outside workers, or an outbox delivery.

Business rule tasks (10.3.3.4) are bound in the same ways, or call a decision. That is made at once, as a config that is an
expression is evaluated (10.3.3.6).
"""

from collections.abc import Mapping
from typing import Any, cast

from engine.bpmn.definition import DecisionConfig, Node, ScriptConfig, ServiceTaskConfig
from engine.core.activity import Activity
from engine.core.data import made, outward
from engine.core.decisions import decide
from engine.core.deliveries import task_delivery
from engine.core.effects import NewExternalTask, NewJob
from engine.core.reading import carried, inputs_of, priority_of_work, retries_of_work, typed_inputs
from engine.core.registry import register
from engine.core.run import CannotGoOn, Run
from engine.core.snapshot import Completed
from engine.core.state import Token
from engine.core.values import Variable, typed


class ServiceTask(Activity):
    def enter(self, run: Run, token: Token, node: Node) -> None:
        if isinstance(node.config, ScriptConfig):
            _evaluate(run, token, node, node.config)
            run.leave(token)
            return
        if isinstance(node.config, DecisionConfig):
            decide(run, token, node, node.config)
            run.leave(token)
            return
        config = cast(ServiceTaskConfig, node.config)
        if config.work == "deliver":  # done once it is in the outbox: boundary events have no time to happen
            task_delivery(run, token, node, config)
            run.leave(token)
            return
        super().enter(run, token, node)

    def begin(self, run: Run, token: Token, node: Node) -> None:
        config = cast(ServiceTaskConfig, node.config)
        payload: dict[str, Any] = {}
        if config.inputs:
            payload["inputs"] = carried(typed_inputs(inputs_of(run, token, config.inputs)))
        if config.headers:
            payload["headers"] = dict(config.headers)
        priority = priority_of_work(run, token, config.priority)
        retry, attempts = retries_of_work(run, token, config.retry, config.max_attempts)
        if config.work == "external":
            task = NewExternalTask(
                run.new_id(),
                config.topic,
                token.id,
                node.id,
                priority=priority,
                max_attempts=attempts,
                retry=retry,
                payload=payload,
                lock_first=config.exclusive,
                exclusive=config.exclusive,
            )
            token.wait_for(run.effects.external_tasks, task)
            run.record(token.scope, "external_task_created", node.id, {"item_id": str(task.id), "topic": task.topic})
            return
        job = NewJob(
            run.new_id(),
            "service",
            config.topic,
            token.id,
            node.id,
            priority=priority,
            max_attempts=attempts,
            retry=retry,
            lease_seconds=config.lease_seconds,
            payload=payload,
            lock_first=config.exclusive,
            exclusive=config.exclusive,
        )
        token.wait_for(run.effects.jobs, job)
        run.record(token.scope, "job_created", node.id, {"item_id": str(job.id), "kind": "service", "topic": job.topic})

    def result(self, run: Run, token: Token, node: Node, trigger: Completed) -> Mapping[str, Variable]:
        """The result as it is, or what the outputs make of it; they see the result before the variables."""
        config = cast(ServiceTaskConfig, node.config)
        result = trigger.variables
        if config.returned:
            result = {**result, **made(run, token.scope, node, config.returned, result)}
        if not config.outputs:
            return result
        outputs = made(run, token.scope, node, config.outputs, {**result, **trigger.local})
        return {**result, **outputs} if trigger.keeps else outputs


def _evaluate(run: Run, token: Token, node: Node, script: ScriptConfig) -> None:
    """The value becomes the result variable, where there is one; the outputs see it and the inputs."""
    given = inputs_of(run, token, script.inputs)
    try:
        value = typed(script.expression.evaluate(run.names(token.scope, given)))
    except TypeError as error:
        raise CannotGoOn("expression", f"the expression of {node.name or node.id}: {error}") from error
    result = {script.result_variable: value} if script.result_variable else {}
    if script.outputs:
        result |= made(run, token.scope, node, script.outputs, {**typed_inputs(given), **result})
    if result:
        run.assign(token.scope, outward(run, token.scope, node, result), node.id)


register("service_task", ServiceTask())
register("business_rule_task", ServiceTask())
