"""One task over HTTP: who sees it, the claim and its 409, the form and its 422, unclaim, assign, complete."""

from __future__ import annotations

import re
from collections.abc import Callable
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.web.conftest import Browser
from tests.web.tasks import open_task

Client = Callable[[str], Browser]
GOOD = {"net": "3912.50", "items": "2", "goods": "true", "pay_by": "2026-12-14", "decision": "approve", "note": "Two pallets."}


def in_words(html: str) -> str:
    """What a person reads: without tags, with single blanks."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html)).replace(" .", ".")


def holder(conn: psycopg.Connection, task: UUID) -> tuple[str, str | None]:
    row = conn.execute("SELECT status, assignee FROM user_task WHERE id = %s", (task,)).fetchone()
    assert row is not None
    return row[0], row[1]


# ---- who may see it


@pytest.mark.parametrize("change", ["", "/claim", "/unclaim", "/complete", "/assign"])
def test_S61_a_task_of_others_answers_exactly_as_one_that_does_not_exist(
    client_for: Client, committed_db: psycopg.Connection, change: str
) -> None:
    theirs = open_task(committed_db, "Check invoice", groups=("clerks",), assignee="ada", business_key="INV-1", about="Halden")
    cy = client_for("cy")

    def ask(task: UUID) -> tuple[int, str]:
        path = f"/tasks/{task}{change}"
        answer = cy.post(path, {"request_id": "r", "assignee": "cy"}) if change else cy.get(path)
        return answer.status_code, re.sub(r"[0-9a-f-]{12,}", "", answer.text)

    assert ask(theirs) == ask(uuid4())
    assert ask(theirs)[0] == 404
    for name in ("Ada", "ada", "Halden", "INV-1", "Check invoice"):
        assert name not in ask(theirs)[1]


def test_S61_an_ex_member_sees_nothing_from_the_next_request_on(
    client_for: Client, committed_db: psycopg.Connection, people: dict[str, UUID]
) -> None:
    task = open_task(committed_db, groups=("clerks",))
    bo = client_for("bo")
    assert bo.get(f"/tasks/{task}").status_code == 200
    committed_db.execute("DELETE FROM person_group WHERE person_id = %s", (people["bo"],))
    assert bo.get(f"/tasks/{task}").status_code == 404
    assert bo.post(f"/tasks/{task}/claim", {"request_id": "r"}).status_code == 404


def test_a_change_by_get_is_refused_and_changes_nothing(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",))
    answer = client_for("ada").get(f"/tasks/{task}/claim")
    assert (answer.status_code, set(answer.headers["Allow"].split(", "))) == (405, {"POST", "OPTIONS"})
    assert holder(committed_db, task) == ("open", None)


def test_S69_a_claim_without_a_token_or_with_another_users_is_refused(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",))
    ada, bo = client_for("ada"), client_for("bo")
    for token in ("", "nonsense", bo.token):
        answer = ada.client.post(f"/tasks/{task}/claim", data={"csrf_token": token, "request_id": "r"})
        assert answer.status_code == 400
        assert "Nothing was done" in answer.text
        assert "Press again</button>" not in answer.text
    assert holder(committed_db, task) == ("open", None)


# ---- the claim


def test_a_claim_without_htmx_answers_303_to_the_task(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",))
    answer = client_for("ada").post(f"/tasks/{task}/claim?back=/inbox?view%3Dmine", {"request_id": "r"})
    assert (answer.status_code, answer.location) == (303, f"/tasks/{task}?back=/inbox?view%3Dmine")
    assert holder(committed_db, task) == ("claimed", "ada")


def test_a_claim_by_htmx_answers_the_row_in_its_new_state(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",), business_key="INV-1")
    answer = client_for("ada").htmx(f"/tasks/{task}/claim", {"request_id": "r"})
    assert answer.status_code == 200
    assert answer.text.lstrip().startswith(f'<tbody id="task-{task}"')
    assert "Open Check invoice, INV-1" in answer.text and "You" in answer.text
    assert "You claimed Check invoice, INV-1." in in_words(answer.text)


@pytest.mark.parametrize("htmx", [True, False])
def test_a_lost_claim_names_the_winner_the_time_and_the_next_free_task(
    client_for: Client, committed_db: psycopg.Connection, htmx: bool
) -> None:
    task = open_task(committed_db, groups=("clerks",), business_key="INV-1")
    following = open_task(committed_db, groups=("clerks",), business_key="INV-2")
    ada, bo = client_for("ada"), client_for("bo")
    ada.post(f"/tasks/{task}/claim", {"request_id": "a"})

    answer = (bo.htmx if htmx else bo.post)(f"/tasks/{task}/claim", {"request_id": "b"})
    assert answer.status_code == 409
    assert re.search(r"Ada Moreno claimed this (just now|\d+ seconds? ago)\.", in_words(answer.text))
    assert re.search(r'<time data-live="ago" datetime="2\d{3}-\d\d-\d\dT', answer.text)
    assert f"/tasks/{following}/claim" in answer.text
    assert ("<html" in answer.text) is not htmx
    assert "busy" not in answer.text.lower() and "conflict" not in answer.text.lower()
    assert holder(committed_db, task) == ("claimed", "ada")


def test_S23_a_second_press_another_tab_back_and_a_replay_say_the_same(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",))
    ada, bo = client_for("ada"), client_for("bo")
    ada.post(f"/tasks/{task}/claim", {"request_id": "a"})
    presses = [bo.post(f"/tasks/{task}/claim", {"request_id": name}) for name in ("b", "c", "b")]
    assert [answer.status_code for answer in presses] == [409, 409, 409]
    back = bo.get(f"/tasks/{task}")
    assert back.status_code == 200
    for answer in (*presses, back):
        assert "Ada Moreno claimed this" in in_words(answer.text)
    again = ada.post(f"/tasks/{task}/claim", {"request_id": "a2"})
    assert again.status_code == 303
    assert committed_db.execute("SELECT count(*) FROM history WHERE kind = 'task_claimed'").fetchone() == (1,)


def test_a_replayed_id_gets_its_first_answer_and_a_new_press_the_truth_of_now(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",))
    ada, bo = client_for("ada"), client_for("bo")
    ada.post(f"/tasks/{task}/claim", {"request_id": "a"})
    assert bo.post(f"/tasks/{task}/claim", {"request_id": "b"}).status_code == 409
    ada.post(f"/tasks/{task}/unclaim", {"request_id": "u"})
    replay = bo.post(f"/tasks/{task}/claim", {"request_id": "b"})
    assert replay.status_code == 409
    assert "Ada Moreno claimed this" in in_words(replay.text)
    assert bo.post(f"/tasks/{task}/claim", {"request_id": "new"}).status_code == 303


# ---- the form


def test_the_form_shows_every_kind_of_field_with_its_value(client_for: Client, committed_db: psycopg.Connection) -> None:
    variables: dict[str, tuple[str, object]] = {"supplier": ("string", "Northwind <b>Paper</b>"), "order": ("json", {"lines": 2})}
    task = open_task(committed_db, groups=("clerks",), assignee="ada", variables=variables)
    html = client_for("ada").get(f"/tasks/{task}").text
    assert 'value="Northwind &lt;b&gt;Paper&lt;/b&gt;" readonly' in html
    assert re.search(r'name="items" value="1" inputmode="numeric"', html)
    assert re.search(r'type="checkbox" id="f-goods" name="goods" value="true" checked', html)
    assert 'type="date"' in html and 'type="radio" name="decision" value="reject"' in html
    assert "Compare with the order, then decide." in html
    assert "lines" in html and "What the case knows" in html


def test_a_refused_form_keeps_everything_typed_and_links_each_problem_to_its_field(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    task = open_task(committed_db, groups=("clerks",), assignee="ada")
    typed = {"net": "12.480,00", "items": "two", "pay_by": "2026-12-14", "note": "keep <me>", "request_id": "r"}
    answer = client_for("ada").post(f"/tasks/{task}/complete", typed)
    assert answer.status_code == 422
    html = answer.text
    assert "Not completed: 3 fields need your attention" in html
    assert '<a href="#f-net">Net amount: “12.480,00” has two kinds of separators. Write 12480.00.</a>' in html
    assert '<a href="#f-decision">Decision: Choose one.</a>' in html
    assert re.search(r'id="f-net" name="net" value="12\.480,00"[^>]*aria-invalid="true" aria-describedby="f-net-e', html)
    assert 'id="f-net-e"' in html
    assert 'class="errors" tabindex="-1" autofocus' in html
    assert 'value="two"' in html and 'value="2026-12-14"' in html and "keep &lt;me&gt;" in html
    # The box was ticked by default and is not in what was sent: it stays unticked.
    assert re.search(r'type="checkbox" id="f-goods" name="goods" value="true"(?! checked)', html)
    assert holder(committed_db, task) == ("claimed", "ada")


def test_completing_goes_back_to_the_same_list_and_stores_typed_values(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",), assignee="ada", business_key="INV-1")
    ada = client_for("ada")
    back = "/inbox?view=mine&q=INV"
    sent = {name: value for name, value in GOOD.items() if name != "goods"}
    answer = ada.post(f"/tasks/{task}/complete?back=/inbox?view%3Dmine%26q%3DINV", {**sent, "request_id": "r"})
    assert (answer.status_code, answer.location) == (303, back)
    assert "You completed Check invoice, INV-1." in in_words(ada.get(back).text)
    row = committed_db.execute("SELECT final_variables FROM process_instance").fetchone()
    assert row is not None
    values = {name: (each["type"], each["value"]) for name, each in row[0].items()}
    assert values["net"] == ("double", 3912.5)
    assert values["items"] == ("integer", 2)
    assert values["goods"] == ("boolean", False)
    assert values["pay_by"] == ("date", "2026-12-14")
    assert values["decision"] == ("string", "approve")


def test_a_repeated_complete_is_the_same_success_and_a_new_press_says_who_was_first(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    task = open_task(committed_db, groups=("clerks",), assignee="ada")
    ada = client_for("ada")
    for _ in range(2):
        assert ada.post(f"/tasks/{task}/complete", {**GOOD, "request_id": "r"}).status_code == 303
    late = ada.post(f"/tasks/{task}/complete", {**GOOD, "request_id": "r2"})
    assert late.status_code == 409
    assert "You completed this" in in_words(late.text)
    assert committed_db.execute("SELECT count(*) FROM history WHERE kind = 'task_completed'").fetchone() == (1,)


def test_a_lost_complete_keeps_what_was_typed_beside_what_was_stored(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",), assignee="ada")
    ada, bo = client_for("ada"), client_for("bo")
    ada.post(f"/tasks/{task}/complete", {**GOOD, "request_id": "a"})
    answer = bo.post(f"/tasks/{task}/complete", {**GOOD, "note": "Ask for a credit", "decision": "reject", "request_id": "b"})
    assert answer.status_code == 409
    words = in_words(answer.text)
    assert "Ada Moreno completed this" in words and "Your answer was not used" in words
    assert "Ask for a credit" in words and "Two pallets." in words
    assert "Reject" in words and "Approve" in words
    assert answer.text.count(">differs<") == 2


def test_completing_what_another_holds_is_409_even_when_the_form_is_wrong(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",), assignee="ada")
    answer = client_for("bo").post(f"/tasks/{task}/complete", {"net": "x", "note": "mine", "request_id": "b"})
    assert answer.status_code == 409
    assert "Ada Moreno claimed this" in in_words(answer.text)
    assert "mine" in answer.text


def test_S69_an_honest_press_with_an_expired_token_keeps_the_form_and_asks_again(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    task = open_task(committed_db, groups=("clerks",), assignee="ada")
    ada = client_for("ada")
    ada.get(f"/tasks/{task}")
    old = ada.token
    # In another tab she signs out and in again: the token of this page is hers, but of a session that has ended.
    ada.post("/logout")
    ada.sign_in("ada")
    ada.token = old
    answer = ada.post(f"/tasks/{task}/complete", {**GOOD, "note": "typed for an hour", "request_id": "r"})
    assert answer.status_code == 400
    assert "please press again" in answer.text and "typed for an hour" in answer.text
    assert holder(committed_db, task) == ("claimed", "ada")
    again = ada.post(f"/tasks/{task}/complete", {**GOOD, "request_id": "r"})
    assert again.status_code == 303


# ---- unclaim, assign


def test_unclaim_gives_the_task_back(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",), assignee="ada")
    ada = client_for("ada")
    assert ada.post(f"/tasks/{task}/unclaim", {"request_id": "u"}).status_code == 303
    assert holder(committed_db, task) == ("open", None)
    again = ada.post(f"/tasks/{task}/unclaim", {"request_id": "u2"})
    assert again.status_code == 409
    assert "Nobody has this task at the moment." in in_words(again.text)


def test_assign_hands_the_task_to_a_candidate_and_to_nobody_else(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, groups=("clerks",), assignee="ada")
    ada = client_for("ada")
    page = ada.get(f"/tasks/{task}").text
    assert '<option value="bo">Bo Lindqvist</option>' in page and "Cy Okafor" not in page
    nobody = ada.post(f"/tasks/{task}/assign", {"request_id": "1", "assignee": "nobody"})
    assert nobody.status_code == 422 and "Nobody called “nobody” can sign in." in nobody.text
    outsider = ada.post(f"/tasks/{task}/assign", {"request_id": "2", "assignee": "cy"})
    assert outsider.status_code == 403
    assert ada.post(f"/tasks/{task}/assign", {"request_id": "3", "assignee": "bo"}).status_code == 303
    assert holder(committed_db, task) == ("claimed", "bo")
    late = ada.post(f"/tasks/{task}/assign", {"request_id": "4", "assignee": "ada"})
    assert late.status_code == 409
    assert "Bo Lindqvist claimed this" in in_words(late.text)
