"""Who may what: the function and its SQL fragments say the same."""

from __future__ import annotations

from itertools import product
from typing import Any

import psycopg
import pytest

from engine.commands.may import InstanceView, TaskView, instance_visible, may, may_params, task_candidate, task_visible
from engine.commands.outcome import Actor
from tests import rows
from tests.cast import ADA, CAST, CY, OP, ROOT

Connection = psycopg.Connection[Any]
STRANGER = Actor("ada", role="administrator", groups=frozenset({"billing"}), tenant_id="other")
TASKS = [
    TaskView("", assignee, users, groups)
    for assignee, users, groups in product((None, "ada", "cy"), ((), ("bo",), ("cy", "bo")), ((), ("billing",), ("warehouse", "billing")))
]


@pytest.mark.parametrize("actor", [*CAST, STRANGER], ids=lambda actor: f"{actor.username}@{actor.tenant_id or 'home'}")
def test_lists_show_exactly_the_tasks_that_may_be_seen(db: Connection, actor: Actor) -> None:
    made = {
        rows.task(
            db,
            groups=view.candidate_groups,
            candidate_users=view.candidate_users,
            assignee=view.assignee,
            status="open" if view.assignee is None else "claimed",
        ): view
        for view in TASKS
    }
    ids = list(made)
    seen = db.execute(f"SELECT t.id FROM user_task t WHERE t.id = ANY (%(ids)s) AND {task_visible()}", {"ids": ids, **may_params(actor)})
    assert {row[0] for row in seen} == {key for key, view in made.items() if may(actor, "see", view)}


def test_a_task_without_candidates_is_seen_by_operators_only() -> None:
    nobodys = TaskView("", None)
    assert [actor.username for actor in CAST if may(actor, "see", nobodys)] == ["op", "root"]


def test_an_assignee_who_is_no_candidate_sees_the_task_and_an_ex_member_does_not() -> None:
    task = TaskView("", "cy", (), ("billing",))
    assert may(CY, "see", task)
    assert not may(Actor("ada", groups=frozenset({"warehouse"})), "see", task)


@pytest.mark.parametrize("actor", [*CAST, STRANGER], ids=lambda actor: f"{actor.username}@{actor.tenant_id or 'home'}")
def test_an_instance_is_seen_by_operators_its_starter_and_who_sees_one_of_its_tasks(db: Connection, actor: Actor) -> None:
    plain, with_task = rows.instance(db, started_by="bo"), rows.instance(db, started_by="bo")
    rows.task(db, with_task, groups=("warehouse",))
    query = f"SELECT i.id FROM process_instance i WHERE i.id = ANY (%(ids)s) AND {instance_visible()}"
    seen = {row[0] for row in db.execute(query, {"ids": [plain, with_task], **may_params(actor)})}
    sees_a_task = may(actor, "see", TaskView("", None, (), ("warehouse",)))
    expected = {plain: InstanceView("", "bo"), with_task: InstanceView("", "bo", sees_a_task)}
    assert seen == {key for key, view in expected.items() if may(actor, "see", view)}


def test_fragments_take_placeholders_of_either_kind() -> None:
    assert task_candidate("x", bind=":{}".format) == (
        "(:may_all OR :may_user = ANY (x.candidate_users) OR x.candidate_groups && CAST(:may_groups AS text[]))"
    )


def test_operations_are_for_operators_people_and_keys_for_administrators_and_starting_for_everybody() -> None:
    def allowed(action: str, kind: str) -> list[str]:
        return [actor.username for actor in CAST if may(actor, action, kind)]

    assert allowed("start", "definition") == ["ada", "bo", "cy", "op", "root"]
    for action, kind in [
        ("deploy", "definition"),
        ("retry", "job"),
        ("work", "external_task"),
        ("publish", "message"),
        ("skip", "delivery"),
    ]:
        assert allowed(action, kind) == ["op", "root"]
    for kind in ("person", "api_key"):
        assert allowed("add", kind) == ["root"]
    assert may(OP, "cancel", InstanceView("", "ada"))
    assert not may(ADA, "cancel", InstanceView("", "ada"))
    assert may(ROOT, "cancel", InstanceView("", "ada"))


def test_an_action_that_nobody_thought_of_is_a_mistake_and_no_permission() -> None:
    with pytest.raises(ValueError, match="found 'eat'"):
        may(OP, "eat", TaskView("", None))
    with pytest.raises(ValueError, match="found 'eat'"):
        may(OP, "eat", InstanceView("", "ada"))
