"""Fail-points act where and when they were told to, and are free otherwise."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from engine.failpoints import NAMES, FailPointRaised, commit_point, failpoint, install


@pytest.fixture(autouse=True)
def disarmed():
    yield
    install("")


def test_nothing_happens_where_nothing_is_armed():
    install("")
    for name in NAMES:
        failpoint(name)


def test_a_point_acts_at_its_nth_passage_and_every_later_one():
    install("effect.before#3=raise")
    failpoint("effect.before")
    failpoint("effect.after")
    failpoint("effect.before")
    for _ in range(2):
        with pytest.raises(FailPointRaised, match=r"effect\.before"):
            failpoint("effect.before")


def test_once_means_once():
    install("effect.before=raise:once")
    with pytest.raises(FailPointRaised):
        failpoint("effect.before")
    failpoint("effect.before")


@pytest.mark.parametrize("text", ["effect.before", "no.such=kill", "effect.before=explode", "effect.before#x=kill"])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(ValueError, match="fail-point"):
        install(text)


def test_hold_waits_until_the_other_side_came_and_went(tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    install(f"effect.before=hold:{gate}")
    passed = threading.Event()
    held = threading.Thread(target=lambda: (failpoint("effect.before"), passed.set()))
    held.start()
    with open(gate, "wb"):  # returns only once the other thread has arrived
        assert not passed.is_set()
    held.join(10)
    assert passed.is_set()


@pytest.mark.parametrize(("action", "expected"), [("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)])
def test_kill_and_stop_take_the_whole_process(action, expected):
    code = f"from engine.failpoints import *; install('effect.before={action}'); failpoint('effect.before')"
    process = subprocess.Popen([sys.executable, "-c", code])
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    if action == "stop":
        assert os.WIFSTOPPED(status)
        assert os.WSTOPSIG(status) == expected
        os.kill(process.pid, signal.SIGKILL)
        os.waitpid(process.pid, 0)
    else:
        assert os.WTERMSIG(status) == expected


def test_an_armed_commit_point_lies_between_the_write_and_the_commit(committed_db):
    insert = "INSERT INTO pause (kind, topic, paused_by) VALUES ('job', 'x', 'olga')"
    install("command.before_commit=raise")
    with pytest.raises(FailPointRaised), commit_point(committed_db, "command.before_commit"):
        committed_db.execute(insert)
    assert committed_db.execute("SELECT count(*) FROM pause").fetchone()[0] == 0
    install("")
    with commit_point(committed_db, "command.before_commit"):
        committed_db.execute(insert)
    assert committed_db.execute("SELECT count(*) FROM pause").fetchone()[0] == 1
