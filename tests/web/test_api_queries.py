"""The lists that programs page through: each row once, whatever ties, in a total order; a cursor of another list is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from engine.commands.outcome import Actor
from engine.db.session import make_engine
from engine.ids import new_id
from engine.queries import crew, work
from engine.queries.api import InstanceListFilter, api_instances
from engine.queries.audit import AuditFilter, audit
from engine.queries.catalogue import decision_versions, form_content, form_versions, process_versions
from engine.queries.decisions import evaluation_page
from engine.queries.deployments import deployment, deployments
from engine.queries.directory import groups, member, members
from engine.queries.instance_lists import subscriptions_of, tokens_of, variables_of
from engine.queries.rows import BadCursor, Page, reading
from engine.queries.schedules import schedules_of_all
from tests.web.rows import Rows

OPERATOR = Actor("olga", role="operator")
ROOT = Actor("root", role="administrator")
Ask = Callable[[str | None], Page[Any]]


@pytest.fixture
def screen(database_url: str) -> Iterator[Connection]:
    engine = make_engine(database_url, pool_size=1)
    with engine.connect() as conn:
        yield conn
    engine.dispose()


@pytest.fixture
def made(committed_db) -> Rows:
    return Rows(committed_db)


def walked(ask: Ask) -> list[Any]:
    """Every row, page by page."""
    found, cursor = [], None
    while True:
        page = ask(cursor)
        found += page.items
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor


def audited(made: Rows, action: str, *, at: Any, kind: str = "instance", by: str = "olga", of: str = "1") -> None:
    made.conn.execute(
        "INSERT INTO audit (at, actor, action, object_kind, object_id, reason, detail) VALUES (%s, %s, %s, %s, %s, 'why', %s)",
        (at, by, action, kind, of, Jsonb({"n": 1})),
    )


def test_the_audit_is_paged_newest_first_also_where_times_are_the_same(screen: Connection, made: Rows) -> None:
    made.person("olga", "Olga Petrova", "operator")
    now = made.now()
    for action in ("cancel", "retry", "suspend", "resume"):
        audited(made, action, at=now)
    audited(made, "release", at=now + timedelta(seconds=1))
    found = walked(lambda cursor: audit(screen, OPERATOR, AuditFilter(), cursor=cursor, limit=2))
    assert [deed.action for deed in found] == ["release", "resume", "suspend", "retry", "cancel"]
    assert (found[0].actor_name, found[0].reason, found[0].detail) == ("Olga Petrova", "why", {"n": 1})


def test_the_audit_is_filtered_by_each_of_its_columns_and_by_time(screen: Connection, made: Rows) -> None:
    now = made.now()
    audited(made, "cancel", at=now, of="a", by="olga")
    audited(made, "retry", at=now + timedelta(hours=1), of="b", by="oz", kind="job")

    def asked(**wanted: Any) -> list[str]:
        return [deed.action for deed in audit(screen, OPERATOR, AuditFilter(**wanted)).items]

    for narrowed in ({"actor": "oz"}, {"action": "retry"}, {"object_kind": "job"}, {"object_id": "b"}, {"since": now + timedelta(hours=1)}):
        assert asked(**narrowed) == ["retry"], narrowed
    assert asked(until=now + timedelta(hours=1)) == ["cancel"]
    assert asked(since=now, until=now) == []


def test_what_was_done_to_people_and_their_keys_only_administrators_see(screen: Connection, made: Rows) -> None:
    audited(made, "person_added", at=made.now(), kind="person")
    audited(made, "api_key_added", at=made.now(), kind="api_key")
    assert audit(screen, OPERATOR, AuditFilter()).items == ()
    assert audit(screen, OPERATOR, AuditFilter(object_kind="person")).items == ()
    assert {deed.action for deed in audit(screen, ROOT, AuditFilter()).items} == {"person_added", "api_key_added"}


def test_deployments_say_how_much_each_brought(screen: Connection, made: Rows) -> None:
    made.definition("a")
    made.definition("b")
    empty = made.insert("deployment", deployed_by="olga", name="nothing")
    found = walked(lambda cursor: deployments(screen, cursor=cursor, limit=1))
    assert [(one.name, one.processes, one.decisions, one.forms) for one in found] == [("nothing", 0, 0, 0), ("", 1, 0, 0), ("", 1, 0, 0)]
    assert len({one.id for one in found}) == 3
    assert deployment(screen, empty) == found[0]
    assert deployment(screen, new_id()) is None
    assert deployment(screen, empty, tenant_id="other") is None


def test_processes_are_paged_by_key_and_one_of_them_by_version_downwards(screen: Connection, made: Rows) -> None:
    for key in ("b", "a", "c"):
        made.definition(key)
    made.definition("a", version=2, name="Ärger")
    first = walked(lambda cursor: process_versions(screen, cursor=cursor, limit=1))
    assert [(one.key, one.version, one.latest, one.startable) for one in first] == [
        ("a", 2, True, True), ("b", 1, True, True), ("c", 1, True, True),
    ]  # fmt: skip
    assert [one.version for one in walked(lambda cursor: process_versions(screen, key="a", cursor=cursor, limit=1))] == [2, 1]
    assert [one.name for one in process_versions(screen, q="ÄRGER").items] == ["Ärger"]
    assert process_versions(screen, q="%").items == ()


def test_what_is_suspended_or_begins_by_itself_is_not_startable(screen: Connection, made: Rows) -> None:
    made.definition("runs")
    made.definition("rests")
    made.definition("timed")
    made.conn.execute("UPDATE process_definition SET status = 'suspended' WHERE key = 'rests'")
    made.conn.execute("UPDATE process_definition SET has_none_start = false WHERE key = 'timed'")
    assert [one.key for one in process_versions(screen, startable=True).items] == ["runs"]
    assert [one.key for one in process_versions(screen, startable=False).items] == ["rests", "timed"]


def filed(made: Rows, table: str, key: str, version: int, **more: Any) -> Any:
    return made.insert(
        table, key=key, version=version, deployment_id=made.insert("deployment", deployed_by="olga"),
        resource_name=f"{key}.file", content_hash=bytes([version]) * 32, **more,
    )  # fmt: skip


def test_decisions_and_forms_are_paged_the_same_way(screen: Connection, made: Rows) -> None:
    for key, version in (("a", 1), ("a", 2), ("b", 1)):
        filed(made, "decision_definition", key, version, name=key.upper(), sort_key=key, xml=b"<x/>")
        filed(made, "form_definition", key, version, content=b'{"n": %d}' % version)
    for ask in (decision_versions, form_versions):
        assert [(one.key, one.version) for one in walked(lambda cursor, ask=ask: ask(screen, cursor=cursor, limit=1))] == [
            ("a", 2),
            ("b", 1),
        ]
        assert [one.version for one in walked(lambda cursor, ask=ask: ask(screen, key="a", cursor=cursor, limit=1))] == [2, 1]
        assert [one.key for one in ask(screen, q="B").items] == ["b"]
        assert ask(screen, tenant_id="other").items == ()
    found = form_content(screen, "a", 1)
    assert found is not None and found.content == b'{"n": 1}'
    assert form_content(screen, "a", 3) is None


def test_evaluations_of_a_decision_are_paged_newest_first(screen: Connection, made: Rows) -> None:
    decision = filed(made, "decision_definition", "a", 1, name="A", sort_key="a", xml=b"<x/>")
    for number in range(3):
        made.event("decision_evaluated", item_id=decision, data={"number": number})
    made.event("decision_evaluated", item_id=new_id())
    found = walked(lambda cursor: evaluation_page(screen, decision, cursor=cursor, limit=1))
    assert [one.data["number"] for one in found] == [2, 1, 0]


def test_people_are_paged_by_name_and_groups_by_key(screen: Connection, made: Rows) -> None:
    made.person("zoe", "Ann", groups=("clerks",))
    made.person("bob", "Ann", groups=("clerks", "drivers"))
    made.person("cy", "Cy", "operator")
    made.conn.execute("UPDATE person SET disabled_at = now() WHERE username = 'zoe'")
    found = walked(lambda cursor: members(screen, cursor=cursor, limit=1))
    assert [one.username for one in found] == ["bob", "zoe", "cy"]
    assert found[0].groups == ["clerks", "drivers"]
    assert [one.username for one in members(screen, group="drivers").items] == ["bob"]
    assert [one.username for one in members(screen, q="an").items] == ["bob", "zoe"]
    assert member(screen, "cy") == found[2]
    assert member(screen, "nobody") is None
    assert [(one.key, one.members) for one in walked(lambda cursor: groups(screen, cursor=cursor, limit=1))] == [
        ("clerks", 1),
        ("drivers", 1),
    ]


def test_what_stands_in_an_instance_is_paged_list_by_list(screen: Connection, made: Rows) -> None:
    process = made.definition()
    instance = made.instance(process)
    scope = made.scope(instance)
    tokens = [made.token(instance, scope, element) for element in ("a", "b", "c")]
    inner = new_id()
    made.insert("scope", id=inner, instance_id=instance, path=[scope, inner], parent_id=scope, element_id="sub", token_id=tokens[0])
    made.variable(inner, "a", "string", "inner")
    made.variable(scope, "b", "integer", 1)
    made.variable(scope, "a", "string", "outer")
    for token, name in zip(tokens, ("paid", "sent", "lost"), strict=True):
        made.insert(
            "subscription", kind="catch", definition_id=process, instance_id=instance, root_id=instance, token_id=token, element_id="m",
            message_name=name, correlation_key="k",
        )  # fmt: skip
    found = walked(lambda cursor: tokens_of(screen, instance, cursor=cursor, limit=1))
    assert [token.id for token in found] == tokens
    told = walked(lambda cursor: variables_of(screen, instance, cursor=cursor, limit=1))
    assert [(one.name, one.value, one.scope_element) for one in told] == [("a", "outer", None), ("b", 1, None), ("a", "inner", "sub")]
    awaited = walked(lambda cursor: subscriptions_of(screen, instance, cursor=cursor, limit=1))
    assert [(one.kind, one.message_name) for one in awaited] == [("message", "paid"), ("message", "sent"), ("message", "lost")]
    assert tokens_of(screen, new_id()).items == ()


def test_instances_are_filtered_as_on_the_page(screen: Connection, made: Rows) -> None:
    old, new = made.definition(version=1), made.definition(version=2)
    plain, stuck = made.instance(old, business_key="INV-1"), made.instance(new, business_key="INV-2")
    token = made.token(stuck, made.scope(stuck), "book")
    made.incident("x", definition=new, instance=stuck, token_id=token)

    def asked(**wanted: Any) -> list[Any]:
        return [one.id for one in api_instances(screen, OPERATOR, InstanceListFilter(**wanted)).items]

    for narrowed in ({"version": 2}, {"incidents": True}, {"element_id": "book"}, {"q": "INV-2"}, {"q": str(stuck)}):
        assert asked(**narrowed) == [stuck], narrowed
    assert asked(q="INV") == [stuck, plain]
    assert asked(process_definition_key="other") == []


def test_start_timers_of_all_processes_are_paged_the_next_first(screen: Connection, made: Rows) -> None:
    for key, ahead in (("b", 2), ("a", 1), ("c", 3)):
        made.job(made.definition(key), kind="start_timer", element_id="begin", due_at=made.at(hours=ahead))
    found = walked(lambda cursor: schedules_of_all(screen, cursor=cursor, limit=1))
    assert [(one.key, one.version, one.missed) for one in found] == [("a", 1, 0), ("b", 1, 0), ("c", 1, 0)]
    assert [one.key for one in schedules_of_all(screen, key="c").items] == ["c"]


def test_one_job_one_incident_one_worker_and_one_message_are_found_by_id(screen: Connection, made: Rows) -> None:
    process = made.definition()
    instance = made.instance(process)
    job = made.job(process, instance=instance, token=made.token(instance, made.scope(instance), "book"), status="failed")
    incident = made.incident("x", definition=process, instance=instance, job_id=job)
    worker = made.worker()
    message = made.insert("message", name="paid", correlation_key="1", published_by="olga", expires_at=made.at(hours=1))
    found = work.work_item(screen, "job", job)
    assert found is not None and (found.id, found.definition_key) == (job, "invoice")
    assert work.work_item(screen, "external_task", job) is None
    assert work.work_item(screen, "job", job, tenant_id="other") is None
    assert [one.id for one in work.failed_items(screen, incident_id=incident).items] == [job]
    assert work.failed_items(screen, incident_id=new_id()).items == ()
    known = crew.worker(screen, worker)
    assert known is not None and known.host == "fra-7"
    stored = crew.stored_message(screen, message)
    assert stored is not None and stored.name == "paid"
    assert crew.stored_message(screen, message, tenant_id="other") is None


def test_late_completions_and_expired_messages_are_paged_newest_first(screen: Connection, made: Rows) -> None:
    for number in range(3):
        made.conn.execute("INSERT INTO refusal (actor, command, reason, at) VALUES ('w', %s, 'lease_lost', now())", (f"complete_{number}",))
        made.insert(
            "message_expired", name=f"m{number}", correlation_key="", published_by="olga", published_at=made.at(hours=-2),
            expires_at=made.at(minutes=-number),
        )  # fmt: skip
    late = walked(lambda cursor: work.late_completions(screen, cursor=cursor, limit=1))
    assert [one.command for one in late] == ["complete_2", "complete_1", "complete_0"]
    expired = walked(lambda cursor: crew.expired_messages(screen, cursor=cursor, limit=1))
    assert [one.name for one in expired] == ["m0", "m1", "m2"]


LISTS: dict[str, Callable[[Connection, str], Any]] = {
    "audit": lambda conn, cursor: audit(conn, OPERATOR, AuditFilter(), cursor=cursor),
    "deployments": lambda conn, cursor: deployments(conn, cursor=cursor),
    "processes": lambda conn, cursor: process_versions(conn, cursor=cursor),
    "people": lambda conn, cursor: members(conn, cursor=cursor),
    "groups": lambda conn, cursor: groups(conn, cursor=cursor),
    "tokens": lambda conn, cursor: tokens_of(conn, new_id(), cursor=cursor),
    "variables": lambda conn, cursor: variables_of(conn, new_id(), cursor=cursor),
    "schedules": lambda conn, cursor: schedules_of_all(conn, cursor=cursor),
    "late": lambda conn, cursor: work.late_completions(conn, cursor=cursor),
    "evaluations": lambda conn, cursor: evaluation_page(conn, new_id(), cursor=cursor),
}
FORGED = (
    "x", "bnVsbA", "W10", "WzEsMl0", "WyJhIiwiYiJd", "WyJhIiwiYiIsImMiXQ", "WyJcdTAwMDAiXQ", "WyIyMDI2LTAxLTAxIiwiMSJd",
    "WyIyMDI2LTAxLTAxVDAwOjAwOjAwKzAwOjAwIiwiOTk5OTk5OTk5OTk5OTk5OTk5OTk5Il0",
)  # fmt: skip


NAMED = ("processes", "people", "groups", "evaluations")
"""Lists whose places are texts or one number, so that a forged one may name a place: it is then a page like any other."""


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("cursor", FORGED)
def test_a_cursor_that_a_list_did_not_make_is_refused_and_never_an_error_of_the_database(
    screen: Connection, name: str, cursor: str
) -> None:
    try:
        with reading(screen) as conn:
            page = LISTS[name](conn, cursor)
    except BadCursor:
        return
    assert name in NAMED and page == Page(())
