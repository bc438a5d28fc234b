"""Decisions on the screens: the list, the table with what matched, versions, requirements, evaluations, deployments."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

import psycopg

from tests.web.decisions import cooked, dinner, tables
from tests.web.operations import Client, deployed, model, one
from tests.web.test_api_contract import program

__all__ = ["program"]
PAGE = "/operations/decisions/dish/1"


def rows_of(page: str, css: str) -> list[str]:
    """The texts of the table rows that have this class."""
    found = re.findall(rf'<tr[^>]* class="{css}">(.*?)</tr>', page, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in found]


def test_without_decisions_the_list_says_what_would_fill_it(client_for: Client) -> None:
    page = client_for("olga").get("/operations/decisions").text
    assert "No decision is deployed" in page and "/operations/deploy" in page


def test_the_list_has_the_latest_version_of_each_and_finds_by_name(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    cooked(committed_db, ("dinner_for_guests.dmn", tables().replace(b'"One pot"', b'"Two pots"').replace(b"Always there", b"As ever")))
    dinner(committed_db)
    olga = client_for("olga")
    page = olga.get("/operations/decisions").text
    assert "The dish" in page and "/operations/decisions/dish/2" in page and "of 2" in page and "/operations/decisions/dish/1" not in page
    found = olga.get("/operations/decisions/list?q=buy").text
    assert "What to buy" in found and "The dish" not in found
    assert "No decision matches “zebra”" in olga.get("/operations/decisions?q=zebra").text


def test_a_table_is_shown_as_its_author_wrote_it(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    page = client_for("olga").get(PAGE).text
    for text in (
        "Priority",
        "winter menu",
        "How many guests",
        "guests",
        "3 + floor(guests / 10)",
        "A large table",
        "[2..8]",
        "Why",
        "Not made yet",
    ):
        assert text in page, text
    assert "What is cooked, by season and by how many come." in page
    assert rows_of(page, "hit") == []


def test_the_rules_that_matched_last_are_marked(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    dinner(committed_db, degrees=3, guests=12, business_key="D-1")
    page = client_for("olga").get(PAGE).text
    marked = rows_of(page, "hit")
    assert marked[0].startswith("3 matched &#34;Winter&#34; &gt; 8")
    assert "season = &#34;Winter&#34;" in page.replace("Season", "season") and "D-1" in page
    assert "Roast" in marked[1]


def test_another_evaluation_is_chosen_by_its_link(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    dinner(committed_db, degrees=3, guests=5)
    dinner(committed_db, degrees=30, guests=5)
    olga = client_for("olga")
    assert rows_of(olga.get(PAGE).text, "hit")[0].startswith("4 matched")
    first = one(committed_db, "SELECT min(id) FROM history WHERE kind = 'decision_evaluated' AND data ->> 'key' = 'dish'")
    assert rows_of(olga.get(f"{PAGE}?evaluation={first}").text, "hit")[0].startswith("2 matched")
    for nonsense in ("x", "99999999999999999999", "-1", "0"):
        assert olga.get(f"{PAGE}?evaluation={nonsense}").status_code == 200


def test_an_evaluation_of_another_version_marks_nothing(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    dinner(committed_db)
    other = one(committed_db, "SELECT max(id) FROM history WHERE kind = 'decision_evaluated' AND data ->> 'key' = 'season'")
    assert rows_of(client_for("olga").get(f"{PAGE}?evaluation={other}").text, "hit") == []


def test_requirements_are_links_in_both_directions(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    olga = client_for("olga")
    page = olga.get(PAGE).text
    assert 'href="/operations/decisions/season"' in page and "guests" in page
    season = olga.get("/operations/decisions/season").text
    assert "Required by" in season and 'href="/operations/decisions/dish"' in season
    assert "if degrees &lt; 10 then" in season


def test_the_timeline_of_a_case_tells_its_decisions_and_links_to_them(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    case = dinner(committed_db)
    page = client_for("olga").get(f"/operations/instances/{case}").text
    assert "Choose the dish</strong> decided" in page
    assert re.search(r'href="/operations/decisions/dish/1\?evaluation=\d+">The dish</a>', page)
    assert "by rule 3" in page and "How many guests = 12" in page


def test_who_started_a_case_reads_its_decisions_without_a_link_that_is_not_for_them(
    client_for: Client, committed_db: psycopg.Connection
) -> None:
    cooked(committed_db)
    page = client_for("ada").get(f"/operations/instances/{dinner(committed_db)}").text
    assert "Choose the dish</strong> decided The dish:" in page and "/operations/decisions" not in page


def test_a_decision_that_fails_is_an_incident_on_the_page(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    case = dinner(committed_db, guests=12, degrees=3)
    assert case
    cooked(committed_db, ("dinner_for_guests.dmn", tables().replace(b'hitPolicy="PRIORITY"', b'hitPolicy="UNIQUE"')))
    stuck = dinner(committed_db)
    page = client_for("olga").get(f"/operations/instances/{stuck}").text
    assert "expected at most one rule that matches (UNIQUE), found rule 1 and rule 3" in page


def test_what_is_not_there_is_404_and_clerks_may_not_look(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    olga, ada = client_for("olga"), client_for("ada")
    for path in ("/operations/decisions/nothing", "/operations/decisions/dish/7", "/operations/decisions/dish/7/model"):
        assert olga.get(path).status_code == 404
    for path in ("/operations/decisions", PAGE, f"{PAGE}/model", f"{PAGE}/evaluations", "/operations/decisions/list"):
        assert ada.get(path).status_code == 403


def test_the_model_is_a_download_and_never_a_page(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    answer = client_for("olga").get(f"{PAGE}/model")
    assert answer.data == tables()
    assert answer.mimetype == "application/octet-stream" and "dish-1.dmn" in answer.headers["Content-Disposition"]
    again = client_for("olga").get(f"{PAGE}/model", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


def test_the_fragment_of_evaluations_is_the_part_of_the_page(client_for: Client, committed_db: psycopg.Connection) -> None:
    cooked(committed_db)
    dinner(committed_db)
    olga = client_for("olga")
    part = olga.get(f"{PAGE}/evaluations")
    assert 'id="decision-evaluations"' in part.text and rows_of(part.text, "hit") == []
    assert olga.get(f"{PAGE}/evaluations", headers={"If-None-Match": part.headers["ETag"]}).status_code == 304


def test_markup_in_a_table_is_text(client_for: Client, committed_db: psycopg.Connection) -> None:
    hostile = (
        tables().replace(b"A large table", b"&lt;script&gt;alert(1)&lt;/script&gt;").replace(b'name="The dish"', b'name="&lt;b&gt;dish"')
    )
    cooked(committed_db, ("dinner_for_guests.dmn", hostile))
    page = client_for("olga").get(PAGE).text
    assert "<script>alert" not in page and "<b>dish" not in page and "&lt;script&gt;alert(1)" in page


# ---- deployments


def upload(client: Any, *files: tuple[str, bytes]) -> Any:
    client.get("/operations/deploy")
    data = {"request_id": "1", "file": [(BytesIO(content), name) for name, content in files]}
    return client.post("/operations/deploy", data, content_type="multipart/form-data")


def test_a_table_is_deployed_by_the_page_beside_its_process(client_for: Client, committed_db: psycopg.Connection) -> None:
    olga = client_for("olga")
    answer = upload(olga, ("dinner_for_guests.bpmn", model("dinner_for_guests")), ("dinner_for_guests.dmn", tables()))
    assert answer.status_code == 303
    page = olga.get(answer.headers["Location"]).text
    assert "1 process and 3 decisions deployed" in page and 'href="/operations/decisions/dish/1"' in page
    again = upload(olga, ("dinner_for_guests.dmn", tables()))
    assert "Nothing is new in" in olga.get(again.headers["Location"]).text


def test_a_wrong_table_is_refused_by_file_element_and_line(client_for: Client) -> None:
    answer = upload(client_for("olga"), ("dinner_for_guests.dmn", tables().replace(b"[2..8]", b"[2..")))
    assert answer.status_code == 422
    for text in ("dinner_for_guests.dmn", "r2b", "input entry 2 of rule 2 is not an expression"):
        assert text in answer.text


def test_a_process_that_lacks_its_decision_is_deployed_with_a_warning(client_for: Client, committed_db: psycopg.Connection) -> None:
    olga = client_for("olga")
    deployment = deployed(committed_db, "dinner_for_guests").deployment_id
    page = olga.get(f"/operations/deployments/{deployment}").text
    assert "calls the decision &#39;dish&#39;, which is not deployed" in page


def test_the_api_deploys_decisions_too(program: Any) -> None:
    olga = program("olga")
    answer = olga.client.post("/api/v1/deployments", headers=olga.headers, data={"file": (BytesIO(tables()), "dinner_for_guests.dmn")})
    assert answer.status_code == 201, answer.text
    found = answer.get_json()
    assert found["definitions"] == []
    assert [(each["key"], each["version"], each["unchanged"]) for each in found["decisions"]] == [
        ("dish", 1, False),
        ("season", 1, False),
        ("shopping", 1, False),
    ]
