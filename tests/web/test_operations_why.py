"""Why is nothing happening: one true sentence for each token that waits, on real cases."""

from __future__ import annotations

import html
import re
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from engine.commands.complete_task import complete_task
from engine.commands.external_tasks import acquire_external_tasks, complete_external_task
from engine.commands.messages import publish_message
from engine.commands.outcome import MessagePublished
from engine.commands.tasks import claim
from engine.db.acquire import acquire_jobs
from engine.queries.instance import Token
from engine.queries.why import why
from tests.conftest import Clock
from tests.rows import definition
from tests.web.conftest import Browser
from tests.web.operations import ADA, OLGA, Client, deployed, failed_external_task, one, started
from tests.web.rows import Rows


def sentence(olga: Browser, instance: UUID) -> str:
    text = olga.get(f"/operations/instances/{instance}/part?part=why").text
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text)).strip()


def test_a_free_task_waits_for_its_group_and_a_claimed_one_for_its_holder(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "a_task_a_delivery_a_task")
    here = started(committed_db, "relay")
    olga = client_for("olga")
    assert "Waits for somebody of clerks to claim it" in sentence(olga, here)
    claim(committed_db, one(committed_db, "SELECT id FROM user_task"), actor=ADA, request_id=None)
    assert "Ada Moreno has it since" in sentence(olga, here)


def test_an_external_task_waits_for_its_topic_then_for_its_worker_then_for_a_person(
    client_for: Client, committed_db: psycopg.Connection, clock: Clock
) -> None:
    deployed(committed_db, "an_external_task")
    here = started(committed_db, "shipping")
    olga = client_for("olga")
    clock.advance(seconds=125)
    assert re.search(r"Waits for a worker to ask for topic ship, for 2:\d\d min", sentence(olga, here))
    acquire_external_tasks(committed_db, actor=OLGA, worker_id="mint-02", topics=["ship"], limit=1, lease_seconds=30)
    assert "mint-02 works on it, attempt 1 of 3." in sentence(olga, here)
    clock.advance(seconds=40)
    assert "its lease ended" in sentence(olga, here)
    failed_external_task(committed_db, business_key="ORD-2")
    stuck = one(committed_db, "SELECT id FROM process_instance WHERE business_key = 'ORD-2'")
    assert "Its attempts are used up, the last just now with CarrierDown: 503. It waits for a person." in sentence(olga, stuck)


def test_a_job_says_whether_any_worker_that_lives_knows_its_handler(
    client_for: Client, committed_db: psycopg.Connection, clock: Clock
) -> None:
    deployed(committed_db, "order-fulfilment")
    here = started(committed_db, "order-fulfilment", business_key="ORD-1")
    olga = client_for("olga")
    assert "No worker alive knows samples.reserve_stock" in sentence(olga, here)
    made = Rows(committed_db)
    made.worker(kinds=Jsonb([["service", "samples.reserve_stock"]]))
    assert "the next free worker takes it" in sentence(olga, here)
    committed_db.execute("UPDATE job SET attempts = 2, available_at = baton_now() + interval '3 min', last_error = 'Timeout: slow'")
    assert re.search(r"Attempt 2 of 4 failed with Timeout: slow; the next is due in (3:00|2:\d\d) min", sentence(olga, here))
    clock.advance(seconds=300)
    assert "No worker alive knows" in sentence(olga, here), "the worker has not beaten for five minutes"
    committed_db.execute("UPDATE job SET held = '{paused}'")
    assert "Held back: paused." in sentence(olga, here)


def test_a_message_names_its_key_and_the_keys_of_stored_ones_that_nearly_fit(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    here = started(committed_db, "shipping")
    made = Rows(committed_db)
    token = one(committed_db, "SELECT id FROM token")
    committed_db.execute("DELETE FROM external_task")
    made.insert(
        "subscription", kind="catch", message_name="paid", correlation_key="4711", instance_id=here, root_id=here, token_id=token,
        definition_id=one(committed_db, "SELECT id FROM process_definition"), element_id="ship",
    )  # fmt: skip
    olga = client_for("olga")
    assert "Waits for message paid with key 4711." in sentence(olga, here)
    for key in ("4712", "471"):
        made.insert("message", name="paid", correlation_key=key, published_by="x", expires_at=made.at(hours=1))
    shown = html.unescape(sentence(olga, here))
    assert "2 stored messages of this name have another key. Nearly fits: a message has key" in shown
    assert all(f'a message has key "{key}", and this waits with "4711": a character or two differ' in shown for key in ("471", "4712"))


def test_a_condition_says_what_it_waits_for_and_why_it_cannot_tell(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "when_it_becomes_true")
    here = started(committed_db, "when_it_becomes_true", total=1, fragile=True, cancelled="perhaps")
    olga = client_for("olga")
    assert "Cannot tell" not in sentence(olga, here), "what cannot be armed is an incident of the activity"
    assert "It could not go on: condition ${cancelled} of No longer wanted: expected true or false" in sentence(olga, here)
    assert "Waits until ${total &gt; 100} is true." in sentence(olga, here)
    committed_db.execute("""UPDATE token SET memory = '{"conditions": {"large": true}}' WHERE element_id = 'large_or_late'""")
    assert "Occurs again once ${total &gt; 100} has been false and is true again." in sentence(olga, here)
    committed_db.execute("""UPDATE token SET memory = '{"conditions": {"large": "it is a text"}}' WHERE element_id = 'large_or_late'""")
    assert "Cannot tell whether ${total &gt; 100} is true: it is a text. It looks again when a variable changes." in sentence(olga, here)


def test_an_event_that_waits_for_several_names_what_is_still_to_come(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "several_at_once")
    sent = publish_message(committed_db, "MAIL", actor=OLGA, correlation_key="7", variables={"broken": False}, time_to_live_seconds=None)
    assert isinstance(sent, MessagePublished) and sent.instance_id is not None
    olga = client_for("olga")
    before = sentence(olga, sent.instance_id)
    assert "Given up" in before and "Waits for message STOP with key 7." in before
    task = one(committed_db, "SELECT id FROM user_task WHERE element_id = 'pack'")
    complete_task(committed_db, task, actor=ADA, variables={}, request_id=None)
    waiting = sentence(olga, sent.instance_id)
    assert "Paid and picked up" in waiting and "Waits for message PAID with key 7." in waiting
    assert "Waits until ${checked} is true." in waiting
    assert "ready#" not in waiting, "people read the name of the event"


def test_an_ended_instance_says_how_it_ended_and_keeps_its_variables(client_for: Client, committed_db: psycopg.Connection) -> None:
    deployed(committed_db, "an_external_task")
    here = started(committed_db, "shipping", business_key="ORD-1", boxes=3)
    [task] = acquire_external_tasks(committed_db, actor=OLGA, worker_id="w", topics=["ship"], limit=1)
    complete_external_task(committed_db, task.id, actor=OLGA, lease_number=task.lease_number, variables={"carrier": "Kestrel"})
    olga = client_for("olga")
    assert "It was completed" in sentence(olga, here)
    rest = olga.get(f"/operations/instances/{here}/part?part=rest").text
    assert "Kestrel" in rest
    assert "boxes" in rest


def test_a_token_of_which_nothing_is_known_is_not_called_fine() -> None:
    token = Token(UUID(int=1), UUID(int=2), "ship", None, "waiting", None, owns_scope=False, joined=0)  # type: ignore[arg-type]
    [waiting] = why([token], tasks=[], work=[], subscriptions=[], incidents=[])
    assert waiting.reasons[0].kind == "unknown"


def test_a_complex_gateway_that_has_gone_on_says_that_it_waits_for_its_reset() -> None:
    taken = {"taken": ["f1", "f2"]}
    memory = Token(UUID(int=1), UUID(int=2), "enough", None, "listening", None, owns_scope=False, joined=0, memory=taken)  # type: ignore[arg-type]
    [waiting] = why([memory], tasks=[], work=[], subscriptions=[], incidents=[])
    assert waiting.reasons[0].kind == "reset"


def test_a_subprocess_is_not_listed_beside_its_own_inner_tokens() -> None:
    outer = Token(UUID(int=1), UUID(int=2), "sub", None, "waiting", None, owns_scope=True, joined=0)  # type: ignore[arg-type]
    joining = Token(UUID(int=3), UUID(int=4), "join", "f1", "joining", None, owns_scope=False, joined=1)  # type: ignore[arg-type]
    found = why([outer, joining], tasks=[], work=[], subscriptions=[], incidents=[])
    assert [waiting.token.element_id for waiting in found] == ["join"]
    assert found[0].reasons[0].kind == "joining"


def test_a_call_waits_for_the_instance_that_it_called_and_that_one_says_who_called_it(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    deployed(committed_db, "an_order_calls_a_check")
    here = started(committed_db, "order", business_key="A-1", amount=60, positions=["nut"])
    called = one(committed_db, "SELECT id FROM process_instance WHERE parent_id IS NOT NULL AND status = 'running'")
    olga = client_for("olga")
    assert re.search(r"Waits for Check, version 1: A-1/nut, which it has called", sentence(olga, here))
    page = olga.get(f"/operations/instances/{here}").text
    assert f'href="/operations/instances/{called}"' in page and "Add the tax" in page and "Cancel…" in page
    inner = olga.get(f"/operations/instances/{called}").text
    assert "called by Order" in inner and f'href="/operations/instances/{here}"' in inner and "Cancel…" not in inner
    assert "<strong>A call</strong> began this" in inner
    found = olga.get(f"/api/v1/process-instances/{here}").json
    assert str(called) in found["called"] and found["parent_id"] is None
    child = olga.get(f"/api/v1/process-instances/{called}").json
    assert (child["root_id"], child["parent_id"]) == (str(here), str(here))


def test_exclusive_work_waits_for_what_has_its_turn(client_for: Client, committed_db: psycopg.Connection) -> None:
    flows = "".join(
        f'<sequenceFlow id="to_{name}" sourceRef="fork" targetRef="{name}"/>'
        f'<serviceTask id="{name}" name="{name.title()}" baton:handler="h"/>'
        for name in ("pack", "weigh")
    )
    body = f'<startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="fork"/><parallelGateway id="fork"/>{flows}'
    head = '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:baton="urn:baton:bpmn" targetNamespace="urn:test">'
    xml = f'{head}<process id="parcels" isExecutable="true" baton:exclusive="true">{body}</process></definitions>'
    definition(committed_db, "parcels", xml=xml.encode())
    here = started(committed_db, "parcels")
    olga = client_for("olga")
    assert "Waits for its turn: exclusive work of the same case comes before it: Pack." in sentence(olga, here)
    acquire_jobs(committed_db, owner="w", capabilities=[("service", "h")], limit=10, lease_seconds=30, workers=1)
    assert "Waits for its turn: exclusive work of the same case is running: Pack." in sentence(olga, here)
    assert "held" not in sentence(olga, here).lower()
