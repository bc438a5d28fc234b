"""The read side of operations, on rows inserted here: each number, each order, each page."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from sqlalchemy import Connection, text

from engine.db.session import make_engine
from engine.ids import new_id
from engine.queries import crew, instance, work
from engine.queries.due import LANES, lanes
from engine.queries.instances import InstanceFilter, count_instances, instances
from engine.queries.overview import overview, throughput
from engine.queries.processes import definition, definitions, element_counts
from engine.queries.rows import BadCursor, cursor_of, number_cursor, reading, time_cursor
from tests.web.rows import Rows


@pytest.fixture
def screen(database_url: str) -> Iterator[Connection]:
    engine = make_engine(database_url, pool_size=1)
    with engine.connect() as conn:
        yield conn
    engine.dispose()


@pytest.fixture
def made(committed_db) -> Rows:
    return Rows(committed_db)


def test_an_empty_database_shows_noughts_and_no_oldest_age(screen: Connection) -> None:
    shown = overview(screen)
    assert (shown.numbers.running, shown.numbers.failed, shown.numbers.expired, shown.numbers.workers) == (0, 0, 0, 0)
    assert shown.due == 0
    assert shown.oldest_due_seconds is None
    assert shown.outbox_lag_seconds is None
    assert shown.numbers.expired_oldest_seconds is None


def test_the_overview_counts_each_thing_once(screen: Connection, made: Rows) -> None:
    process = made.definition()
    running = made.instance(process)
    made.instance(process, status="completed", ended_at=made.now())
    scope = made.scope(running)
    token = made.token(running, scope, "book")
    worker = made.worker()
    made.worker(host="mute", silent_seconds=90)
    made.job(process, instance=running, token=token, available_at=made.at(seconds=-252), due_at=made.at(seconds=-252))
    made.job(process, instance=running, token=token, available_at=made.at(hours=1))
    made.job(process, instance=running, token=token, held=["paused"])
    made.job(process, instance=running, token=token, **made.lease(worker, seconds_left=-28))
    made.external_task(process, running, token, **made.lease("api-client", seconds_left=20))
    failed = made.job(process, instance=running, token=token, status="failed", attempts=3)
    made.incident("LedgerTimeout", definition=process, instance=running, job_id=failed)
    made.delivery(process, running, available_at=made.at(seconds=-362))
    made.task(running, process, due_at=made.at(hours=-1))
    made.task(running, process, status="completed", ended_at=made.now())
    made.conn.execute(
        "INSERT INTO refusal (actor, command, reason) VALUES ('w', 'complete_job', 'lease_lost'), ('w', 'claim', 'already_claimed')"
    )

    shown = overview(screen)
    n = shown.numbers
    assert (n.running, n.started_today, n.tasks, n.tasks_overdue) == (1, 2, 1, 1)
    assert (n.leased, n.expired, n.failed, n.incidents, n.incident_instances) == (2, 1, 1, 1, 1)
    assert n.expired_oldest_seconds == pytest.approx(28, abs=5)
    assert (n.late_refusals, n.deliveries_waiting, n.workers, n.workers_alive) == (1, 1, 2, 1)
    assert shown.due == 1
    assert shown.oldest_due_seconds == pytest.approx(252, abs=5)
    assert shown.outbox_lag_seconds == pytest.approx(362, abs=5)


def test_lanes_are_found_whatever_lies_between_and_the_longest_waiting_comes_first(screen: Connection, made: Rows) -> None:
    process = made.definition()
    for level, topic, wait in ((5, "b", -10), (5, "a", -20), (9, "a", -30), (1, "c", 3600)):
        made.job(process, kind="start_timer", topic=topic, level=level, available_at=made.at(seconds=wait), element_id=topic + str(level))
    found = lanes(screen)
    assert [(lane.topic, lane.due) for lane in found] == [("a", 2), ("b", 1)]
    assert found[0].oldest_seconds == pytest.approx(30, abs=5)


def test_what_is_due_is_found_without_wading_through_what_is_not(screen: Connection, made: Rows) -> None:
    """30,000 jobs that back off or lie ahead stand in front; the pages read stay those of a handful."""
    process = made.definition()
    made.conn.execute(
        "INSERT INTO job (id, kind, topic, definition_id, element_id, due_at, available_at)"
        " SELECT gen_random_uuid(), 'start_timer', 'later', %s, 'begin', now() + n * interval '1 s', now() + n * interval '1 min'"
        " FROM generate_series(1, 30000) AS n",
        (process,),
    )
    made.job(process, kind="start_timer", topic="now", element_id="now")
    made.conn.execute("VACUUM ANALYZE job")
    assert [(lane.topic, lane.due) for lane in lanes(screen)] == [("now", 1)]
    explained = screen.execute(text(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {LANES}"), {"tenant": "", "cap": 10_001}).scalar_one()
    plan = explained[0]["Plan"]
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 100, plan


def test_throughput_has_every_slice_of_the_day_also_the_empty_ones(screen: Connection, made: Rows) -> None:
    made.event("job_completed")
    made.event("task_completed")
    made.event("flow_taken")
    made.event("job_failed", data={"status": "available"})
    made.event("job_failed", data={"status": "failed"})
    made.event("job_completed", at=made.at(hours=-25))
    slices = throughput(screen, hours=24, slices=48)
    assert len(slices) == 48
    assert (slices[-1].done, slices[-1].retried, slices[-1].exhausted) == (2, 1, 1)
    assert sum(found.done for found in slices) == 2


def test_a_process_shows_its_latest_version_and_what_runs_in_it(screen: Connection, made: Rows) -> None:
    made.person("olga", "Olga Petrova", "operator")
    old, new = made.definition(version=1), made.definition(version=2, name="Invoice approval")
    running = made.instance(new)
    made.instance(old)
    made.task(running, new)
    token = made.token(running, made.scope(running), "book", status="failed")
    made.incident("no flow", definition=new, instance=running, token_id=token)

    [row] = definitions(screen)
    assert (row.version, row.versions, row.running, row.tasks, row.incidents) == (2, 2, 1, 1, 1)
    assert row.deployed_by_name == "Olga Petrova"
    assert [found.version for found in definitions(screen, key="invoice")] == [2, 1]
    assert definitions(screen, q="APPROVAL")[0].id == new
    assert definitions(screen, q="nothing") == []
    assert definition(screen, "invoice", 1).id == old
    assert definition(screen, "invoice", 3) is None
    [counts] = element_counts(screen, definition_id=new)
    assert (counts.element_id, counts.tokens, counts.failed, counts.incidents) == ("book", 1, 1, 1)
    assert element_counts(screen, instance_id=running) == [counts]
    assert element_counts(screen, definition_id=old) == []


def test_S47_instances_that_started_at_the_same_moment_page_without_gaps(screen: Connection, made: Rows) -> None:
    process, at = made.definition(), made.now()
    ids = {made.instance(process, started_at=at) for _ in range(7)}
    seen: list[UUID] = []
    cursor = None
    while True:
        page = instances(screen, InstanceFilter(), cursor=cursor, limit=3)
        seen += [row.id for row in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == 7
    assert set(seen) == ids
    assert count_instances(screen, InstanceFilter(), cap=5) == 6


def test_instances_are_found_by_key_id_status_version_element_and_incident(screen: Connection, made: Rows) -> None:
    one, two = made.definition(), made.definition(version=2)
    ended = made.instance(one, business_key="INV-1", status="completed", ended_at=made.now())
    stuck = made.instance(two, business_key="INV-2")
    token = made.token(stuck, made.scope(stuck), "book", status="failed")
    made.incident("no flow", instance=stuck, token_id=token)
    percent = made.instance(two, business_key="100%_off")

    def found(**wanted: object) -> set[UUID]:
        return {row.id for row in instances(screen, InstanceFilter(**wanted)).items}

    assert found(q="INV-") == {ended, stuck}
    assert found(q="%") == set()
    assert found(q="100%_") == {percent}
    assert found(q=str(stuck)) == {stuck}
    assert found(status="completed") == {ended}
    assert found(key="invoice", version=2) == {stuck, percent}
    assert found(incidents=True) == {stuck}
    assert found(element_id="book") == {stuck}
    assert found(status="bogus'; --") == {ended, stuck, percent}


def test_an_instance_page_has_its_tokens_work_variables_and_past(screen: Connection, made: Rows) -> None:
    made.person("ada", "Ada Moreno")
    process = made.definition(name="Invoice approval")
    here = made.instance(process, business_key="INV-1")
    scope = made.scope(here)
    inner = made.token(here, scope, "sub")
    made.insert("scope", instance_id=here, parent_id=scope, token_id=inner, element_id="sub", path=[scope])
    waiting = made.token(here, scope, "book")
    made.token(here, scope, "join", status="joining", flow_id="f1")
    made.token(here, scope, "join", status="joining", flow_id="f2")
    made.variable(scope, "amount", "double", 12.5)
    made.task(here, process, token=waiting, status="claimed", assignee="ada", assigned_at=made.now())
    worker = made.worker(host="fra-9", pid=77)
    made.job(process, instance=here, token=waiting, **made.lease(worker))
    made.delivery(process, here)
    made.insert("subscription", kind="catch", message_name="paid", correlation_key="4711", definition_id=process, instance_id=here,
                root_id=here, token_id=waiting, element_id="paid")  # fmt: skip
    for key in ("4712", "4713"):
        made.insert("message", name="paid", correlation_key=key, published_by="x", expires_at=made.at(hours=1))
    made.insert("message", name="paid", correlation_key="gone", published_by="x", expires_at=made.at(hours=-1))
    made.event("instance_started", instance=here, actor="ada", data={"variables": {"amount": {"type": "double", "value": 12.5}}})
    made.event("flow_taken", instance=here, data={"flow_id": "f1"})
    made.event("task_claimed", instance=here, actor="ada")

    shown = instance.instance(screen, here)
    assert shown is not None
    assert (shown.definition_name, shown.started_by_name, shown.status) == ("Invoice approval", "Ada Moreno", "running")
    assert instance.instance(screen, new_id()) is None
    tokens = {token.element_id: token for token in instance.tokens(screen, here)}
    assert tokens["sub"].owns_scope
    assert tokens["join"].joined == 2
    [variable] = instance.variables(screen, here)
    assert (variable.name, variable.type, variable.value, variable.changed_by_name) == ("amount", "double", 12.5, "Ada Moreno")
    [task] = instance.tasks(screen, here)
    assert task.assignee_name == "Ada Moreno"
    assert {row.work: (row.host, row.pid) for row in instance.work(screen, here)} == {"job": ("fra-9", 77), "delivery": (None, None)}
    [subscription] = instance.subscriptions(screen, here)
    assert subscription.same_name == 2
    assert [event.kind for event in instance.timeline(screen, here).items] == ["task_claimed", "instance_started"]
    first = instance.timeline(screen, here, everything=True, limit=2)
    assert [event.kind for event in first.items] == ["task_claimed", "flow_taken"]
    rest = instance.timeline(screen, here, everything=True, limit=2, cursor=first.next_cursor)
    assert [event.kind for event in rest.items] == ["instance_started"]
    assert rest.next_cursor is None
    assert instance.flows_taken(screen, here) == {"f1": 1}


def test_R4_leases_are_listed_ended_first_with_owner_number_and_seconds_left(screen: Connection, made: Rows) -> None:
    process = made.definition()
    here = made.instance(process, business_key="ORD-1")
    token = made.token(here, made.scope(here), "book")
    worker = made.worker(host="fra-7", pid=12, silent_seconds=58)
    late = made.job(process, instance=here, token=token, **made.lease(worker, seconds_left=-28, number=7, attempts=2))
    fresh = made.external_task(process, here, token, **made.lease("sage", seconds_left=20))
    soon = made.delivery(process, here, **made.lease(worker, seconds_left=5))

    page = work.leases(screen)
    assert [lease.id for lease in page.items] == [late, soon, fresh]
    first = page.items[0]
    assert (first.number, first.attempts, first.host, first.pid) == (7, 2, "fra-7", 12)
    assert first.left_seconds == pytest.approx(-28, abs=5)
    assert first.total_seconds == pytest.approx(30, abs=1)
    assert first.heartbeat_age_seconds == pytest.approx(58, abs=5)
    assert page.items[2].host is None
    counts = work.lease_counts(screen)
    assert (counts.total, counts.ended, counts.soon) == (3, 1, 1)
    one = work.leases(screen, limit=1)
    assert [lease.id for lease in work.leases(screen, limit=2, cursor=one.next_cursor).items] == [soon, fresh]
    assert [lease.id for lease in work.leases(screen, work="delivery").items] == [soon]
    assert [lease.id for lease in work.leases(screen, q="ord-1", expired=True).items] == [late]
    assert [lease.id for lease in work.leases(screen, owner="sage").items] == [fresh]


def test_failed_work_names_the_leaf_that_a_retry_is_asked_for(screen: Connection, made: Rows) -> None:
    process = made.definition(name="Invoice approval")
    here = made.instance(process, business_key="INV-9")
    token = made.token(here, made.scope(here), "book", status="failed")
    job = made.job(process, instance=here, token=token, status="failed", attempts=3)
    made.incident("LedgerTimeout: no answer", definition=process, instance=here, job_id=job, detail="Traceback …")
    made.incident("no flow matched", definition=process, instance=here, element="gate", token_id=token, kind="no_flow")

    newest = work.failed_items(screen)
    assert [(item.work, item.id) for item in newest.items] == [("token", token), ("job", job)]
    assert newest.items[1].attempts == 3
    assert newest.items[1].detail == "Traceback …"
    assert [item.id for item in work.failed_items(screen, q="ledger").items] == [job]
    assert [item.id for item in work.failed_items(screen, q="inv-9", work="token").items] == [token]
    assert work.failed_items(screen, item_id=job).items[0].definition_name == "Invoice approval"


def test_work_is_listed_by_status_kind_and_what_is_due(screen: Connection, made: Rows) -> None:
    process = made.definition()
    here = made.instance(process)
    token = made.token(here, made.scope(here), "book")
    due = made.job(process, instance=here, token=token, available_at=made.at(seconds=-5))
    timer = made.job(process, instance=here, token=token, kind="timer", topic="", available_at=made.at(hours=1))
    failed = made.external_task(process, here, token, status="failed")

    def found(**wanted: object) -> set[UUID]:
        return {item.id for item in work.work_items(screen, **wanted).items}

    assert found() == {due, timer, failed}
    assert found(due=True) == {due}
    assert found(kind="timer") == {timer}
    assert found(kind="external") == {failed}
    assert found(status="failed") == {failed}
    assert found(topic="ledger.book") == {due}
    assert work.counts_by_status(screen) == {"available": 2, "leased": 0, "failed": 1}


def test_workers_outbox_messages_and_wrong_passwords_are_listed(screen: Connection, made: Rows) -> None:
    process = made.definition()
    here = made.instance(process)
    mute = made.worker(host="mute", silent_seconds=90)
    made.worker(host="fine")
    made.worker(host="gone", stopped_at=made.now())
    made.job(process, instance=here, token=made.token(here, made.scope(here), "x"), **made.lease(mute))
    sent = made.delivery(process, here, status="completed", ended_at=made.now())
    waits = made.delivery(process, here, destination="Mailer")
    made.insert("subscription", kind="start", message_name="order", definition_id=process, element_id="start")
    made.insert("message", name="paid", correlation_key="1", published_by="x", expires_at=made.at(hours=1))
    for _ in range(3):
        made.conn.execute("INSERT INTO login_attempt (username_key, address, succeeded) VALUES ('mira', '10.0.0.1', false)")
    made.conn.execute("INSERT INTO login_attempt (username_key, address, succeeded) VALUES ('mira', '10.0.0.1', true)")

    assert [(row.host, row.leases) for row in crew.workers(screen)] == [("mute", 1), ("fine", 0)]
    assert len(crew.workers(screen, stopped=True)) == 3
    assert {row.id for row in crew.deliveries(screen).items} == {sent, waits}
    assert [row.id for row in crew.deliveries(screen, q="mail", status="available").items] == [waits]
    assert [row.id for row in crew.deliveries(screen, due=True).items] == [waits]
    assert crew.outbox_counts(screen).available == 1
    assert [row.message_name for row in crew.open_subscriptions(screen, q="ORD").items] == ["order"]
    assert [row.name for row in crew.stored_messages(screen).items] == ["paid"]
    [logins] = crew.failed_logins(screen)
    assert (logins.username_key, logins.tries) == ("mira", 3)


@pytest.mark.parametrize("text", ["x", "W10", "WzEsIDJd", cursor_of(3), "%%%", "bnVsbA"])
def test_a_cursor_that_this_list_did_not_make_is_refused_not_obeyed(text: str) -> None:
    with pytest.raises(BadCursor):
        time_cursor(text)


def test_a_number_cursor_comes_back_as_it_went() -> None:
    assert number_cursor(cursor_of(41)) == 41
    assert number_cursor("") is None
    with pytest.raises(BadCursor):
        number_cursor("eyJhIjoxfQ")


def test_a_page_is_read_in_one_snapshot_that_cannot_write(screen: Connection, made: Rows) -> None:
    with reading(screen):
        before = overview(screen).numbers.running
        made.instance(made.definition())
        assert overview(screen).numbers.running == before
        with pytest.raises(Exception, match="read-only"):
            screen.exec_driver_sql("DELETE FROM incident")
    assert overview(screen).numbers.running == before + 1
