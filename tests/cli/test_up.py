"""`baton up`, whole: one start, everything there, gone without a trace; and every part killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cli.embedded import EmbeddedPostgres
from cli.processes import working_in
from cli.supervisor import _marked
from tests.cli.processes import HERE, Person, Up, clean_environment, free_port, running_up, until

pytestmark = [pytest.mark.slow, pytest.mark.faults]
PASSWORD = "a sample secret"


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of its own, in a folder that the server's account may enter. What a failed test left running is stopped."""
    folder = Path(tempfile.mkdtemp(prefix="baton-up-"))
    folder.chmod(0o755)
    home = folder / "home"
    yield home
    for pid in _marked(str(home)):
        os.kill(pid, signal.SIGKILL)
    if (home / "postgres").exists():
        EmbeddedPostgres(home / "postgres").stop(mode="immediate")
    shutil.rmtree(folder)


def nothing_left(home: Path) -> bool:
    return not _marked(str(home)) and not any(working_in(EmbeddedPostgres(home / "postgres").data))


def pid_of(home: Path, *words: str) -> int:
    """The first process of this `up` whose command line holds all of these words: a parent before its children."""
    for pid in sorted(_marked(str(home))):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        if all(word in command for word in words):
            return pid
    raise AssertionError(f"no process with {words}")


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def test_one_start_serves_everything_and_leaves_nothing_and_the_data_survives(home):
    listen = f"127.0.0.1:{free_port()}"
    with running_up(home, BATON_LISTEN=listen) as up:
        assert up.url == f"http://{listen}"
        for name in ("ada", "bo", "cy", "olga"):
            assert re.search(rf"^  {name} ", up.said(), re.MULTILINE)
        assert PASSWORD in up.said()
        ada = Person(up.url, "ada", PASSWORD)
        fields = {
            "vendor": "Holm Paper",
            "vendorMail": "billing@example.test",
            "amount": "120.50",
            "payBy": "2027-01-15",
            "costCentre": "it",
        }
        assert ada.press("/start/invoice-approval", "/start/invoice-approval", **fields).status_code == 303
        page = ada.get("/inbox?view=groups").text + ada.get("/inbox").text
        assert "Check invoice" in page
        olga = Person(up.url, "olga", PASSWORD)
        assert "Sample service" in olga.get("/dev/service").text
        assert olga.press("/dev/service", "/dev/service", delay_seconds="0", failure_percent="0").status_code == 303
        assert ada.press("/dev/service", "/dev/service", delay_seconds="0", failure_percent="100").status_code == 403
        assert ada.get("/dev/mail").status_code == 200
        assert up.stop() == 0
        assert "Stopped" in up.said()
        first = up.said()
    assert nothing_left(home)

    with running_up(home, BATON_LISTEN=listen) as again:
        # What a first start does is not done again; how long a start takes is measured, not tested (docs/performance.md).
        assert "Making a PostgreSQL database" in first and "Making a PostgreSQL database" not in again.said()
        bo = Person(again.url, "bo", PASSWORD)
        assert "Check invoice" in bo.get("/inbox?view=groups").text + bo.get("/inbox").text


def test_a_killed_part_comes_back_and_after_a_killed_up_the_next_one_takes_over(home):
    with running_up(home) as up:
        worker = pid_of(home, "cli.main", "worker")
        os.kill(worker, signal.SIGKILL)
        until(lambda: "worker-1 has ended (killed by SIGKILL)" in up.said(), "the killed worker is noticed")
        until(lambda: pid_of(home, "cli.main", "worker") != worker, "another worker runs")

        gunicorn = pid_of(home, "gunicorn")
        os.kill(gunicorn, signal.SIGKILL)
        until(lambda: "web has ended (killed by SIGKILL)" in up.said(), "the killed gunicorn is noticed")
        until(lambda: answers(up.url), "the web answers again")

        server = EmbeddedPostgres(home / "postgres")
        os.kill(server.pid(), signal.SIGKILL)
        until(lambda: "PostgreSQL has ended" in up.said(), "the killed server is noticed")
        until(lambda: answers(up.url), "the web answers again")

        up.process.kill()
        up.process.wait()
    with running_up(home) as again:
        assert again.url == up.url
        assert Person(again.url, "ada", PASSWORD).get("/inbox").status_code == 200
        assert again.stop(signal.SIGTERM) == 0
    assert nothing_left(home)


def test_a_second_up_of_the_same_home_is_refused_by_name_and_another_home_gets_other_ports(home):
    with running_up(home) as up:
        second = subprocess.run(
            [sys.executable, "-m", "cli.main", "up"],
            cwd=HERE,
            env=clean_environment(BATON_HOME=str(home)),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert second.returncode == 1
        assert f"runs here already, as process {up.process.pid}" in second.stderr
        assert answers(up.url)
        other = Up(home.parent / "other")
        try:
            other.wait_until_running()
            assert other.url != up.url
            assert answers(other.url)
        finally:
            other.stop()


def test_a_port_that_was_asked_for_and_is_taken_is_said_so(home):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        up = Up(home, BATON_LISTEN=listen)
        assert up.process.wait(timeout=60) == 1
    assert f"{listen} is taken by another program" in up.said()
    assert nothing_left(home)


def test_up_uses_the_server_that_DATABASE_URL_names_and_starts_none(home, database_url):
    with running_up(home, DATABASE_URL=database_url) as up:
        assert Person(up.url, "cy", PASSWORD).get("/inbox").status_code == 200
        assert not (home / "postgres").exists()
        assert up.stop() == 0
    assert not _marked(str(home))
