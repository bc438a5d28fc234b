"""Fifty people press "Claim" on one task at the same moment, twenty times over, through a real gunicorn of two processes.

Each is signed in with a session of their own and sends the CSRF token of a page that they really got. Each round: one wins,
49 are told by whom and when, nobody sees a server error; the same press again is answered alike, also after the winner
gave the task back.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
import psycopg
import pytest

from engine.commands.outcome import Actor, PersonSaved
from engine.commands.people import add_person
from engine.db.session import make_engine
from tests import rows
from tests.cast import ROOT
from tests.cli.processes import HERE, clean_environment, free_port, until
from tests.scenarios_db.stage import Stage
from webapp.auth import store
from webapp.auth.identity import Identity

USERS, ROUNDS = 50, 20
TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')
SENTENCE = re.compile(r"<h1>\s*(.+?) claimed this\s*<time\b[^>]*? datetime=\"([^\"]+)\"", re.DOTALL)


class Clerk(httpx.Client):
    """One of the fifty: their own connection, session and CSRF token."""

    def __init__(self, url: str, name: str, session: str) -> None:
        super().__init__(base_url=url, timeout=60, trust_env=False, cookies={"baton_session": session})
        self.name = name
        page = self.get("/inbox")
        found = TOKEN.search(page.text)
        assert found, f"expected a page with a CSRF token, found {page.status_code}: {page.text[:300]}"
        self.token = found[1]

    def press(self, task: UUID, action: str, request_id: str) -> httpx.Response:
        return self.post(f"/tasks/{task}/{action}", data={"csrf_token": self.token, "request_id": request_id})


@dataclass(frozen=True)
class Answer:
    """What a press was told: 303 for a win, else who has it since when."""

    status: int
    by: str = ""
    at: str = ""

    @classmethod
    def of(cls, response: httpx.Response) -> Answer:
        if response.status_code == 303:
            return cls(303)
        found = SENTENCE.search(response.text)
        assert found, f"expected who and when, found {response.status_code}: {response.text[:600]}"
        return cls(response.status_code, found[1], found[2])


@pytest.fixture
def web(database_url: str, tmp_path: Path) -> Iterator[str]:
    """`baton web` with two processes on this test's database; its address."""
    port = free_port()
    told = clean_environment(
        DATABASE_URL=database_url, BATON_LISTEN=f"127.0.0.1:{port}", BATON_WEB_PROCESSES="2", BATON_SECRET_KEY="fifty" * 10
    )
    said = tmp_path / "web.log"
    with said.open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "cli.main", "web"], cwd=HERE, env=told, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        until(lambda: process.poll() is not None or _answers(url), "baton web answers", seconds=60)
        assert process.poll() is None, said.read_text()
        until(lambda: len(psutil.Process(process.pid).children()) == 2, "two processes serve")
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    assert "Traceback" not in said.read_text(), said.read_text()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/live", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def clerks(committed_db: psycopg.Connection[Any], database_url: str, web: str) -> Iterator[list[Clerk]]:
    engine = make_engine(database_url, pool_size=1)
    sessions = []
    with engine.connect() as conn:
        now = rows.one(committed_db, "SELECT baton_now()")
        for number in range(USERS):
            actor = Actor(f"clerk-{number:02}", groups=frozenset({"billing"}), display_name=f"Clerk No. {number:02}")
            saved = add_person(committed_db, actor.username, actor=ROOT, display_name=actor.display_name, groups=actor.groups)
            assert isinstance(saved, PersonSaved)
            who = Identity(saved.person_id, actor, "system", now)
            data = {"csrf_token": f"{saved.person_id}.{store.new_token()}"}  # as DatabaseSessions.sign_in makes it
            sessions.append((actor.display_name, store.open_session(conn, who, data=data, seconds=3600)))
    engine.dispose()
    with ThreadPoolExecutor(10) as pool:
        everyone = list(pool.map(lambda each: Clerk(web, *each), sessions))
    yield everyone
    for clerk in everyone:
        clerk.close()


def all_at_once(clerks: Sequence[Clerk], act: Callable[[Clerk], httpx.Response]) -> list[httpx.Response]:
    barrier = threading.Barrier(len(clerks))

    def run(clerk: Clerk) -> httpx.Response:
        barrier.wait(60)
        return act(clerk)

    with ThreadPoolExecutor(len(clerks)) as pool:
        return list(pool.map(run, clerks))


@pytest.mark.slow
def test_S23_fifty_users_race_for_one_task_twenty_times(committed_db: psycopg.Connection[Any], clerks: list[Clerk]) -> None:
    stage = Stage(committed_db)
    stage.deploy("a_group_task")
    winners: Counter[str] = Counter()
    for number in range(ROUNDS):
        task = stage.start("a_group_task").task("check")
        press = lambda clerk, task=task, number=number: clerk.press(task, "claim", f"round-{number}")  # noqa: E731
        responses = all_at_once(clerks, press)
        answers = [Answer.of(response) for response in responses]
        (winner,) = [clerk for clerk, answer in zip(clerks, answers, strict=True) if answer.status == 303]
        since = rows.columns(committed_db, "user_task", task, "assigned_at")[0]
        losers = {answer for answer in answers if answer.status != 303}
        assert len(losers) == 1, f"all 49 hear the same, found {losers}"
        (told,) = losers
        assert (told.status, told.by) == (409, winner.name)
        assert abs((_moment(told.at) - since).total_seconds()) < 1
        assert [kind for kind, _ in rows.history(committed_db, task)].count("task_claimed") == 1
        winners[winner.name] += 1

        # The same presses again, before and after the winner gives the task back: everybody in the first round, else a few.
        again = [(clerk, answer) for clerk, answer in zip(clerks, answers, strict=True) if number == 0 or clerk in (winner, *clerks[:2])]
        for _ in ("claimed", "given back"):
            replayed = all_at_once([clerk for clerk, _ in again], press)
            assert [Answer.of(response) for response in replayed] == [answer for _, answer in again]
            if rows.columns(committed_db, "user_task", task, "status") == ("claimed",):
                assert winner.press(task, "unclaim", f"back-{number}").status_code == 303
        assert rows.columns(committed_db, "user_task", task, "status", "assignee") == ("open", None)
        assert [kind for kind, _ in rows.history(committed_db, task)].count("task_claimed") == 1, "a replay claims nothing"
    assert winners.total() == ROUNDS


def _moment(text: str) -> Any:
    from datetime import datetime

    return datetime.fromisoformat(text)
