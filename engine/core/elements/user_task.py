"""User task (10.3.4.1, 13.3.3): a row in somebody's inbox. Who may take it and until when is decided when it opens."""

from typing import cast

from engine.bpmn.definition import Node, UserTaskConfig
from engine.core.activity import Activity
from engine.core.effects import NewTask
from engine.core.reading import date_of, many_of, number_of, one_of, text_of
from engine.core.registry import register
from engine.core.run import Run
from engine.core.state import Token

NORMAL_PRIORITY = 50


class UserTask(Activity):
    holds_task = True

    def begin(self, run: Run, token: Token, node: Node) -> None:
        config = cast(UserTaskConfig, node.config) or UserTaskConfig()
        names = run.names(token.scope)
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
        told = {"item_id": str(task.id), "name": task.name, "assignee": task.assignee}
        run.record(token.scope, "task_created", node.id, told)


register("user_task", UserTask())
