"""How statuses, times, people and values read. No database: the time is given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain

import pytest
from flask import g
from markupsafe import Markup

from engine.config import Settings
from engine.core.lifecycle import MAPS, MARKS
from engine.core.values import Variable
from webapp import filters
from webapp.app import create_app
from webapp.operations.failed import LINE, split_error
from webapp.security import local_path

NOW = datetime(2026, 11, 30, 13, 26, 11, tzinfo=UTC)


@pytest.fixture(scope="module")
def page() -> Iterator[None]:
    app = create_app(Settings(database_url="postgresql://nobody@127.0.0.1:1/none", secret_key="w" * 40, time_zone="Europe/Berlin"))
    with app.test_request_context("/"):
        g.now = NOW
        yield


def words(html: Markup) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_every_status_of_every_life_cycle_has_its_badge_and_no_other_word_has() -> None:
    assert set(filters.BADGES) == set(chain.from_iterable(MAPS.values())) | MARKS


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "just now"),
        (1, "1 second ago"),
        (59, "59 seconds ago"),
        (60, "1 minute ago"),
        (7199, "1 hour ago"),
        (3 * 86400, "3 days ago"),
        (30 * 86400, "on 31 Oct 2026"),
    ],
)
def test_the_past_in_words(page: None, seconds: int, said: str) -> None:
    assert words(filters.ago(NOW - timedelta(seconds=seconds))) == said


@pytest.mark.parametrize(
    ("minutes", "said", "kind"),
    [
        (-180, "3 h overdue", "late"),
        (-0.5, "30 s overdue", "late"),
        (70, "in 1 h", "soon"),
        (180, "in 3 h", ""),
        (9 * 60, "today, 23:26", ""),
        (24 * 60, "tomorrow", ""),
        (2 * 24 * 60, "Wed", ""),
        (40 * 24 * 60, "9 Jan 2027", ""),
    ],
)
def test_a_due_date_in_words_red_when_late_amber_when_soon(page: None, minutes: float, said: str, kind: str) -> None:
    html = filters.due(NOW + timedelta(minutes=minutes))
    assert words(html) == said
    assert (f'class="{kind}"' in html) if kind else ("class=" not in html)


def test_the_exact_time_carries_the_zone(page: None) -> None:
    assert 'title="Mon 30 Nov 2026, 14:26:11 CET"' in filters.ago(NOW)
    assert 'datetime="2026-11-30T14:26:11+01:00"' in filters.ago(NOW)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Variable("string", "<img src=x onerror=alert(1)>"), "&lt;img src=x onerror=alert(1)&gt;"),
        (Variable("boolean", True), "Yes"),
        (Variable("integer", 12480), "12,480"),
        (Variable("double", 12480.5), "12,480.50"),
        (Variable("date", "2026-12-14"), '<time datetime="2026-12-14">14 Dec 2026</time>'),
        (Variable("null", None), '<span class="muted">empty</span>'),
        (Variable("json", {"a": "</script>"}), "<pre>{\n &#34;a&#34;: &#34;&lt;/script&gt;&#34;\n}</pre>"),
    ],
)
def test_S66_a_value_is_text_and_never_markup(page: None, value: Variable, said: str) -> None:
    assert str(filters.shown(value)) == said


@pytest.mark.parametrize(
    ("name", "letters"), [("Ada Moreno", "AM"), ("bo.lindqvist", "BL"), ("Cy", "C"), ("", "?"), ("Ana de la Cruz", "AC")]
)
def test_initials(name: str, letters: str) -> None:
    assert filters.initials(name) == letters


@pytest.mark.parametrize(
    ("target", "path"), [("/inbox?q=a%20b", "/inbox?q=a%20b"), ("//x", "/"), ("http://x/", "/"), ("", "/"), (None, "/"), ("/a b", "/")]
)
def test_only_paths_of_this_site_are_gone_back_to(target: str | None, path: str) -> None:
    assert local_path(target, "/") == path


def test_S34_a_long_error_is_shortened_in_the_list_of_failed_work_at_the_end_of_a_word() -> None:
    title, rest = split_error("LedgerTimeout: no answer from " + "ledger " * 50_000 + "\nTraceback")
    assert (title, rest[:9], rest[-9:]) == ("LedgerTimeout", "no answer", " ledger …")
    assert len(title) + len(rest) < LINE + 2
    assert split_error("LedgerTimeout: no answer") == ("LedgerTimeout", "no answer")
    assert len(split_error("x" * 300_000)[0]) == LINE + 2
