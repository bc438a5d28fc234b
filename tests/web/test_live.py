"""Live updates: hints reach whoever may see the task, and nobody else; late commits are not lost; the cap holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty
from uuid import UUID

import psycopg
import pytest

from engine.commands.outcome import Actor
from engine.commands.tasks import claim
from engine.db.session import connect
from tests.web.conftest import Browser
from tests.web.tasks import open_task
from webapp.live import PER_PERSON, Hub, Subscriber

Client = Callable[[str], Browser]
ADA = Actor("ada", groups=frozenset({"clerks"}))
CY = Actor("cy", groups=frozenset({"drivers"}))
OLGA = Actor("olga", role="operator")


@pytest.fixture
def hub(database_url: str) -> Iterator[Hub]:
    hub = Hub(database_url, cap=4)
    yield hub
    for subscriber in list(hub.subscribers):
        hub.leave(subscriber)
    assert hub.wait_until_idle(seconds=10)


def listen(hub: Hub, actor: Actor, *topics: str) -> Subscriber:
    subscriber = Subscriber(actor, frozenset(topics))
    assert hub.join(subscriber)
    assert hub.wait_until_read(seconds=10), "expected the tail to have read once"
    return subscriber


def heard(subscriber: Subscriber) -> str | None:
    return subscriber.hints.get(timeout=10)


def test_a_claim_is_heard_by_the_group_and_the_operator_but_not_by_an_outsider(hub: Hub, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",))
    ada, cy, olga = (listen(hub, actor, "inbox", f"task:{task}", "operations") for actor in (ADA, CY, OLGA))
    claim(committed_db, task, actor=ADA, request_id=None)
    assert {heard(ada), heard(ada)} == {"inbox", f"task:{task}"}
    assert {heard(olga), heard(olga), heard(olga)} == {"inbox", f"task:{task}", "operations"}
    with pytest.raises(Empty):
        cy.hints.get_nowait()


def test_an_event_that_commits_late_is_not_lost(hub: Hub, committed_db: psycopg.Connection, database_url: str) -> None:
    slow, quick = open_task(committed_db, groups=("clerks",)), open_task(committed_db, groups=("clerks",))
    ada = listen(hub, ADA, f"task:{slow}", f"task:{quick}")
    event = "INSERT INTO history (kind, actor, item_id) VALUES ('task_claimed', 'bo', %s)"
    with connect(database_url) as other:
        other.execute("BEGIN")
        other.execute(event, (slow,))  # a smaller number than the next one, and not yet to be seen
        committed_db.execute(event, (quick,))
        assert heard(ada) == f"task:{quick}"
        other.execute("COMMIT")
    assert heard(ada) == f"task:{slow}"


def test_what_happened_between_the_page_and_its_stream_is_told(hub: Hub, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",))
    row = committed_db.execute("SELECT extract(epoch FROM baton_now())::float8").fetchone()
    assert row is not None
    claim(committed_db, task, actor=ADA, request_id=None)
    for since, told in ((row[0], True), (row[0] + 60, False)):
        late = Subscriber(ADA, frozenset({f"task:{task}"}), since=since)
        assert hub.join(late) and hub.wait_until_read(seconds=10)
        assert late.hints.empty() is not told


def test_there_are_no_more_streams_than_the_cap(hub: Hub) -> None:
    for _ in range(4):
        listen(hub, ADA, "inbox")
    assert not hub.join(Subscriber(ADA, frozenset({"inbox"})))


def test_one_person_cannot_take_all_the_streams(database_url: str) -> None:
    hub = Hub(database_url, cap=PER_PERSON + 2)
    held = [listen(hub, ADA, "inbox") for _ in range(PER_PERSON)]
    assert not hub.join(Subscriber(ADA, frozenset({"inbox"})))
    held.append(listen(hub, CY, "inbox"))
    hub.leave(held[0])
    held.append(listen(hub, ADA, "inbox"))
    for subscriber in held:
        hub.leave(subscriber)
    assert hub.wait_until_idle(seconds=10)


def test_the_tail_survives_a_lost_connection(hub: Hub, committed_db: psycopg.Connection, database_url: str) -> None:
    task = open_task(committed_db, groups=("clerks",))
    ada = listen(hub, ADA, f"task:{task}")
    killed = committed_db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'baton-live' AND datname = current_database()"
    ).fetchall()
    assert killed == [(True,)]
    claim(committed_db, task, actor=ADA, request_id=None)
    assert heard(ada) == f"task:{task}"


def test_a_stream_is_hints_and_nothing_else(client_for: Client, committed_db: psycopg.Connection, people: dict[str, UUID]) -> None:
    ada = client_for("ada")
    answer = ada.client.get("/live?topics=inbox")
    assert answer.status_code == 200
    assert answer.mimetype == "text/event-stream"
    assert answer.headers["Cache-Control"] == "no-store" and answer.headers["X-Accel-Buffering"] == "no"
    assert next(iter(answer.response)) in (b"retry: 3000\n\n", "retry: 3000\n\n")
    answer.close()


@pytest.mark.parametrize("topics", ["", "secrets", "inbox,everything", ",".join(f"task:{n}" for n in range(21))])
def test_a_stream_of_nothing_known_is_a_400(client_for: Client, topics: str) -> None:
    assert client_for("ada").get(f"/live?topics={topics}").status_code == 400


def test_a_guest_gets_no_stream(browser: Browser) -> None:
    assert browser.get("/live?topics=inbox").status_code == 302
