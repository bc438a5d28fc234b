"""The inbox over HTTP: what it lists, its order and pages, its empty states, Take next."""

from __future__ import annotations

import re
from collections.abc import Callable

import psycopg
import pytest

from tests.web.conftest import Browser
from tests.web.tasks import open_task

Client = Callable[[str], Browser]
ROW = re.compile(r'<tbody id="task-([0-9a-f-]{36})"')


def listed(browser: Browser, path: str) -> list[str]:
    answer = browser.get(path)
    assert answer.status_code == 200, answer.status
    return ROW.findall(answer.text)


def test_a_group_sees_its_open_tasks_and_an_outsider_sees_none_of_them(client_for: Client, committed_db: psycopg.Connection) -> None:
    task = open_task(committed_db, "Check invoice", groups=("clerks",), business_key="INV-1")
    assert listed(client_for("ada"), "/inbox") == [str(task)]
    outsider = client_for("cy")
    for path in ("/inbox", "/inbox?view=all", "/inbox?view=all&q=INV-1", "/inbox?view=overdue"):
        answer = outsider.get(path)
        assert "Check invoice" not in answer.text
        assert 'class="n">1<' not in answer.text


def test_S47_every_page_shows_each_task_once_while_tasks_come_and_go(client_for: Client, committed_db: psycopg.Connection) -> None:
    with committed_db.transaction():
        tasks = [open_task(committed_db, f"Task {n % 3}", groups=("clerks",), due="2026-12-24" if n % 2 else None) for n in range(60)]
    ada = client_for("ada")
    for sort in ("age", "due", "priority", "task", "assignee", "key", "process"):
        for direction in ("asc", "desc"):
            seen: list[str] = []
            path: str | None = f"/inbox?view=groups&sort={sort}&dir={direction}"
            while path:
                answer = ada.get(path)
                seen += ROW.findall(answer.text)
                found = re.search(r'href="([^"]+)" rel="next"', answer.text)
                path = found[1].replace("&amp;", "&") if found else None
            assert sorted(seen) == sorted(map(str, tasks)), (sort, direction)
    first = ada.get("/inbox?view=groups&sort=age&dir=asc")
    following = re.search(r'href="([^"]+)" rel="next"', first.text)
    assert following is not None
    page_one = ROW.findall(first.text)
    committed_db.execute(
        "UPDATE user_task SET status = 'cancelled', ended_at = baton_clock(), ended_by = 'engine' WHERE id = %s", (page_one[3],)
    )
    open_task(committed_db, "New", groups=("clerks",))
    page_two = listed(ada, following[1].replace("&amp;", "&"))
    assert page_two == [str(task) for task in tasks[25:50]]


def test_S47_blanks_stand_last_in_both_directions(client_for: Client, committed_db: psycopg.Connection) -> None:
    blank = open_task(committed_db, "No due date", groups=("clerks",))
    soon = open_task(committed_db, "Soon", groups=("clerks",), due="2026-12-01")
    late = open_task(committed_db, "Late", groups=("clerks",), due="2027-12-01")
    ada = client_for("ada")
    assert listed(ada, "/inbox?sort=due&dir=asc") == [str(soon), str(late), str(blank)]
    assert listed(ada, "/inbox?sort=due&dir=desc") == [str(late), str(soon), str(blank)]


def test_going_back_by_previous_shows_the_page_before(client_for: Client, committed_db: psycopg.Connection) -> None:
    for n in range(60):
        open_task(committed_db, f"Task {n}", groups=("clerks",))
    ada = client_for("ada")
    first = ada.get("/inbox?sort=age&dir=asc")
    second = ada.get(re.search(r'href="([^"]+)" rel="next"', first.text)[1].replace("&amp;", "&"))  # type: ignore[index]  # fails loudly
    before = re.search(r'href="([^"]+)" rel="prev"', second.text)
    assert before is not None
    assert listed(ada, before[1].replace("&amp;", "&")) == ROW.findall(first.text)


@pytest.mark.parametrize("cursor", ["x", "WyJhIl0", "WyJhIiwiYiJd", "bm9uc2Vuc2U"])
def test_a_foreign_cursor_is_a_400_and_no_more(client_for: Client, cursor: str) -> None:
    assert client_for("ada").get(f"/inbox?sort=age&after={cursor}").status_code == 400


def test_filters_narrow_the_list_and_each_can_be_taken_away(client_for: Client, committed_db: psycopg.Connection) -> None:
    kestrel = open_task(committed_db, "Check invoice", about="Kestrel Print", groups=("clerks",), business_key="INV-7")
    open_task(committed_db, "Check invoice", about="100% Halden", groups=("clerks",), assignee="bo", business_key="INV-8")
    ada = client_for("ada")
    assert listed(ada, "/inbox?q=kestrel") == [str(kestrel)]
    assert listed(ada, "/inbox?q=inv-7") == [str(kestrel)]
    assert listed(ada, "/inbox?assignee=free") == [str(kestrel)]
    assert len(listed(ada, "/inbox?q=100%25")) == 1
    assert listed(ada, "/inbox?q=_") == []
    empty = ada.get("/inbox?q=nobody&due=today")
    assert "No task matches “nobody”" in empty.text
    assert 'href="/inbox?view=groups&amp;due=today"' in empty.text


def test_the_empty_inbox_says_what_would_fill_it(client_for: Client) -> None:
    assert "You have no tasks" in client_for("ada").get("/inbox?view=mine").text


def test_the_fragment_equals_the_part_of_the_page(client_for: Client, committed_db: psycopg.Connection) -> None:
    open_task(committed_db, "Check invoice", groups=("clerks",), business_key="INV-1")
    ada = client_for("ada")
    volatile = re.compile(r'value="[^"]*"|data-focus|<time.*?</time>|\b\d+ s\b|\s+')  # a second may pass between the two
    page, part = (volatile.sub("", ada.get(path).text) for path in ("/inbox?q=inv", "/inbox/list?view=groups&q=inv"))
    assert part in page


def test_an_unchanged_list_answers_304_and_a_changed_one_does_not(client_for: Client, committed_db: psycopg.Connection) -> None:
    open_task(committed_db, "Check invoice", groups=("clerks",))
    ada = client_for("ada")
    first = ada.get("/inbox/list?view=groups")
    again = ada.get("/inbox/list?view=groups", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    open_task(committed_db, "Another", groups=("clerks",))
    assert ada.get("/inbox/list?view=groups", headers={"If-None-Match": first.headers["ETag"]}).status_code == 200


def test_take_next_gives_the_most_urgent_free_task_and_opens_it(client_for: Client, committed_db: psycopg.Connection) -> None:
    open_task(committed_db, "Later", groups=("clerks",))
    urgent = open_task(committed_db, "First", groups=("clerks",), priority=95)
    ada = client_for("ada")
    answer = ada.post("/inbox/next", {"request_id": "n1", "back": "/inbox?view=mine"})
    assert answer.status_code == 303
    assert answer.location == f"/tasks/{urgent}?back=/inbox?view%3Dmine"
    assert committed_db.execute("SELECT assignee FROM user_task WHERE id = %s", (urgent,)).fetchone() == ("ada",)


def test_take_next_with_nothing_free_says_so_calmly(client_for: Client) -> None:
    answer = client_for("ada").post("/inbox/next", {"request_id": "n1"})
    assert answer.status_code == 409
    assert "Nothing is free for you right now" in answer.text
