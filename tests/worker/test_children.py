"""Handler processes: what a handler may do to its process, and what the worker makes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.commands.outcome import Lease
from engine.config import Settings
from engine.core.values import Variable
from engine.ids import new_id
from worker.calling import Call, Completed, Failed, Threw
from worker.children import Children
from worker.held import Held

HANDLERS = "tests.worker.handlers_for_tests"
SAID: list[Any] = []
"""What handlers said in the test that runs."""


@pytest.fixture
def children() -> Iterator[Children]:
    SAID.clear()
    made = Children(Settings(handlers=(HANDLERS,), handler_processes=1))
    yield made
    made.kill()


def call(topic: str, *, variables: dict[str, Any] | None = None, **inputs: Any) -> Call:
    return Call(topic, "job-1", 2, 3, "order-7", "task", "instance-1", variables or {}, inputs)


def held(seconds: float = 60.0) -> Held:
    return Held(Lease("job", new_id(), 1, "me"), seconds=seconds, acquired_at=time.monotonic())


def run(children: Children, topic: str, *, seconds: float = 30.0, under: Held | None = None, **inputs: Any) -> Any:
    return children.run(call(topic, **inputs), under or held(), seconds=seconds, tell=SAID.append)


def appears(path: Path, *, seconds: float = 20.0) -> str:
    end = time.monotonic() + seconds
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end, f"{path.name} did not appear within {seconds} s"
        time.sleep(0.01)
    return path.read_text()


def ends(pid: int, *, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end, f"process {pid} still runs after {seconds} s"
        time.sleep(0.01)


def test_values_keep_their_kind_there_and_back(children):
    outcome = children.run(call("test.echo", variables={"price": Decimal("10.10"), "count": 33}), held(), seconds=30, tell=SAID.append)
    assert isinstance(outcome, Completed)
    assert outcome.variables["echo"] == Variable("json", {"price": 10.1, "count": 33})
    assert outcome.variables["key"] == Variable("string", "job-1")
    assert outcome.variables["attempt"] == Variable("integer", 2)
    assert outcome.variables["pid"].value != os.getpid()


def test_one_process_serves_one_job_after_another(children):
    first, second = run(children, "test.echo"), run(children, "test.echo")
    assert first.variables["pid"] == second.variables["pid"]


def test_a_bpmn_error_is_no_failure(children):
    assert run(children, "test.bpmn_error") == Threw("TOO_HIGH", "the limit is 10,000", {"limit": Variable("integer", 10_000)})


def test_an_exception_is_a_failure_with_its_trace(children):
    outcome = run(children, "test.fails")
    assert isinstance(outcome, Failed)
    assert outcome.error == "LookupError: nothing on the shelf"
    assert 'raise LookupError("nothing on the shelf")' in outcome.detail
    assert "worker/calling.py" not in outcome.detail
    assert outcome.retry_in is None
    assert not outcome.final


def test_a_handler_says_when_to_try_again_or_never(children):
    assert run(children, "test.later").retry_in == 42
    assert run(children, "test.gives_up") == Failed("the customer is gone", final=True)


def test_sys_exit_is_a_failure_and_the_process_goes_on(children):
    before = run(children, "test.echo")
    assert run(children, "test.exits").error == "SystemExit: 3"
    assert run(children, "test.echo").variables["pid"] == before.variables["pid"]


def test_a_killed_process_is_a_failure_that_names_the_signal_and_is_replaced(children):
    assert run(children, "test.dies").error == "the handler's process ended while it ran test.dies: SIGKILL"
    assert isinstance(run(children, "test.echo"), Completed)


def test_a_process_killed_while_idle_is_replaced_without_anybody_noticing(children):
    pid = run(children, "test.echo").variables["pid"].value
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert run(children, "test.echo").variables["pid"].value != pid


def test_what_json_cannot_carry_is_a_failure(children):
    assert "expected a JSON value, found TextIOWrapper" in run(children, "test.returns_nonsense").error


def test_an_unknown_handler_is_a_failure(children):
    assert run(children, "test.unknown") == Failed("handler 'test.unknown' is not known here")


def test_a_module_that_cannot_be_imported_is_named():
    broken = Children(Settings(handlers=("tests.no_such_module",), handler_processes=1))
    assert "expected tests.no_such_module to be importable, found ModuleNotFoundError" in run(broken, "test.echo").error


def test_at_the_hard_deadline_the_handler_and_what_it_started_are_killed(children, tmp_path):
    outcome = run(children, "test.never_stops", seconds=1.0, started=str(tmp_path / "started"))
    assert outcome == Failed("the handler ran longer than its deadline of 1 s and was killed")
    for pid in appears(tmp_path / "started").split():
        ends(int(pid))


def test_a_handler_that_does_not_stop_when_told_is_killed(children, tmp_path):
    mine = held()
    told = threading.Thread(target=lambda: (appears(tmp_path / "started"), mine.cancel(lost=True)))
    told.start()
    outcome = run(children, "test.never_stops", under=mine, started=str(tmp_path / "started"))
    told.join()
    assert outcome.error == "the handler was told to stop and did not; it was killed"
    assert mine.lost


def test_F11_a_handler_sees_that_its_lease_ran_out_and_that_a_renewal_moved_it_on(children, tmp_path):
    run(children, "test.echo")  # so that the lease does not run out while the process starts
    mine = held(seconds=1.0)

    def renew_once_then_no_more() -> None:
        appears(tmp_path / "running-job-1-2")
        mine.renewed(asked_at=(now := time.monotonic()), answered_at=now)

    renewing = threading.Thread(target=renew_once_then_no_more)
    begun = time.monotonic()
    renewing.start()
    outcome = run(children, "test.waits", under=mine, folder=str(tmp_path))
    renewing.join()
    assert outcome.error.startswith("the lease ran out 0.")
    assert outcome.retry_in == 0
    assert time.monotonic() >= mine.deadline > begun + 1.0


def test_the_secrets_of_the_engine_do_not_reach_handlers(children, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hunter2@db/x")
    monkeypatch.setenv("SHOP_TOKEN", "theirs")
    seen = run(children, "test.environment").variables
    assert seen["database"] == seen["settings"] == Variable("null", None)
    assert seen["kept"].value == "theirs"


def test_what_a_handler_says_arrives_before_its_outcome_and_is_bounded(children):
    assert isinstance(run(children, "test.says", lines=250, text="x" * 3_000), Completed)
    lines = [said for said in SAID if "log" in said]
    assert (len(lines), len(lines[0]["log"]), lines[0]["level"]) == (200, 2_000, "warning")
    assert lines[0]["log"].startswith("0 xxx")
    assert {"more": 50} in SAID
    progress = [said for said in SAID if "progress" in said]
    assert progress[-1] == {"progress": 1.0, "doing": "done"}  # the last word is told, however soon it comes after another
    assert len(progress) < 100  # of 1,000 that were said at once


def test_what_a_handler_says_wrongly_is_its_own_failure_and_what_a_thread_says_afterwards_is_not_heard(children):
    assert run(children, "test.says_wrongly", progress=2).error == "ValueError: progress: expected 0 to 1, found 2"
    assert "level: expected one of debug, info, warning, error, found 'loud'" in run(children, "test.says_wrongly", level="loud").error
    SAID.clear()
    assert isinstance(run(children, "test.says_later"), Completed)
    assert isinstance(run(children, "test.hears_itself"), Completed)
    assert SAID == []


def test_what_no_reporter_says_ends_the_child(children):
    def refuses(said: Any) -> None:
        raise ValueError(f"expected a report, found {said!r}")

    outcome = children.run(call("test.says", lines=1, text="x"), held(), seconds=30, tell=refuses)
    assert outcome.error.startswith("the handler's process answered something unreadable: expected a report")
    assert isinstance(run(children, "test.echo"), Completed)


PARENT = """
import sys, threading, time
from tests.worker.test_children import Children, HANDLERS, Settings, call, held
children = Children(Settings(handlers=(HANDLERS,), handler_processes=2))
threading.Thread(target=lambda: children.run(call("test.echo"), held(), seconds=60, tell=print)).start()
children.run(call("test.backtracks", seconds=600, log=sys.argv[1]), held(), seconds=600, tell=print)
"""


def test_a_child_that_holds_the_interpreter_lock_dies_with_its_parent(tmp_path):
    log = tmp_path / "log"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(log)])
    try:
        appears(log)
        family = psutil.Process(parent.pid).children(recursive=True)
        assert family
    finally:
        parent.kill()
        parent.wait()
    for child in family:
        ends(child.pid)
