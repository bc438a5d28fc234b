"""User task (10.3.4.1, 13.3.3): a row in somebody's inbox. Who may take it and until when is decided when it opens.

What input parameters give it is in the memory of its token, so it goes with the task: who completes it sees it, no one else.
"""

from collections.abc import Mapping
from typing import Any, cast

from engine.bpmn.definition import Node, UserTaskConfig
from engine.core.activity import Activity
from engine.core.data import made
from engine.core.effects import NewTask
from engine.core.reading import brought, carried, date_of, inputs_of, many_of, number_of, one_of, text_of, typed_inputs
from engine.core.registry import register
from engine.core.run import Run
from engine.core.snapshot import Completed
from engine.core.state import Token
from engine.core.values import Variable

NORMAL_PRIORITY = 50
INPUTS = "inputs"  # in a token's memory: what the input parameters gave the task, name -> {type, value}


class UserTask(Activity):
    holds_task = True

    def begin(self, run: Run, token: Token, node: Node) -> None:
        config = cast(UserTaskConfig, node.config) or UserTaskConfig()
        own = inputs_of(run, token, config.inputs)
        given = carried(typed_inputs(own))
        names = run.names(token.scope, own)
        task = NewTask(
            id=run.new_id(),
            token_id=token.id,
            element_id=node.id,
            name=text_of(config.name, names) or node.name or node.id,
            assignee=one_of(config.assignee, names, "an assignee"),
            candidate_users=many_of(config.candidate_users, names, "candidate users"),
            candidate_groups=many_of(config.candidate_groups, names, "candidate groups"),
            priority=number_of(config.priority, names, "a priority", default=NORMAL_PRIORITY, largest=100),
            due_at=date_of(config.due, names, run.now, zone=config.zone),
            follow_up_at=date_of(config.follow_up, names, run.now, zone=config.zone),
            about=text_of(config.about, names),
        )
        token.wait_for(run.effects.tasks, task)
        told: dict[str, Any] = {"item_id": str(task.id), "name": task.name, "assignee": task.assignee}
        if given:
            token.remember({**(token.memory or {}), INPUTS: given})
            told[INPUTS] = given
        run.record(token.scope, "task_created", node.id, told)

    def result(self, run: Run, token: Token, node: Node, trigger: Completed) -> Mapping[str, Variable]:
        """What was sent, and what the outputs make of it; what has the name of an input ends with the task."""
        config = cast(UserTaskConfig, node.config) or UserTaskConfig()
        own = brought((token.memory or {}).get(INPUTS, {}))
        outputs = made(run, token.scope, node, config.outputs, {**own, **trigger.variables})
        kept = {name: each for name, each in trigger.variables.items() if name not in own} if config.keeps else {}
        return {**kept, **outputs}


register("user_task", UserTask())
