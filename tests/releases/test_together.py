"""A rolling deployment: the previous release at work, its database migrated under it, this release beside it, both under traffic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from engine.db.session import connect
from tests import rows
from tests.cli.processes import Person
from tests.faults.load import Receiver
from tests.releases.previous import THIS, Release
from tests.releases.traffic import Traffic, models, problems
from tests.web.processes import WebProcess
from tests.worker.processes import WorkerProcess, eventually

pytestmark = [pytest.mark.faults, pytest.mark.slow]
SETTINGS = {"allowed_networks": "127.0.0.1/32", "lease_seconds": "2", "delivery_slots": "2"}
OPEN = (
    "SELECT (SELECT count(*) FROM process_instance WHERE status = 'running') + (SELECT count(*) FROM job)"
    " + (SELECT count(*) FROM delivery WHERE status <> 'completed')"
)


class Stage:
    """Processes of either release on one database, and the traffic that goes through them."""

    def __init__(self, url: str, folder: Path, previous: Release, stack: ExitStack) -> None:
        self.url, self.folder, self.previous, self._stack = url, folder, previous, stack
        self.receiver = Receiver(folder)
        stack.callback(self.receiver.stop)
        self.logs: list[WorkerProcess | WebProcess] = []
        for file, text in models().items():
            (folder / file).write_text(text)
        person = ("ada", "--display-name", "Ada Moreno", "--role", "administrator", "--group", "clerks", "--password-stdin")
        previous.baton("user", "add", *person, typed="first password\n", DATABASE_URL=url)
        previous.baton("deploy", *(str(folder / file) for file in reversed(models())), DATABASE_URL=url)
        self.traffic = Traffic(previous.baton("key", "add", "ada", "--name", "traffic", DATABASE_URL=url).strip(), self.receiver)
        stack.callback(self.traffic.abandon)

    def web(self, release: Release) -> WebProcess:
        process = WebProcess(self.url, self.folder / f"web-{len(self.logs)}.log", tree=release.folder, python=release.python)
        self._stack.enter_context(process)
        self.logs.append(process)
        return process

    def worker(self, release: Release, **settings: str) -> WorkerProcess:
        log = self.folder / f"worker-{len(self.logs)}.log"
        process = WorkerProcess(self.url, log, tree=release.folder, python=release.python, **(SETTINGS | settings))
        self._stack.enter_context(process)
        self.logs.append(process)
        return process

    def goes_on(self, cases: int = 3) -> None:
        so_far = self.traffic.finished()
        eventually(lambda: self.traffic.finished() >= so_far + cases or self.traffic.trouble, f"{cases} further cases", seconds=120)
        assert not self.traffic.trouble, self.traffic.trouble

    def recovers(self, worker: WorkerProcess) -> None:
        """It takes back what another had leased, of whichever sort that was."""
        found = lambda: worker.lines("job_recovered") or worker.lines("delivery_recovered")  # noqa: E731
        eventually(found, f"{worker.log.name} to take back what was leased", seconds=60)


@pytest.fixture
def stage(upgraded_url: str, tmp_path: Path, previous: Release) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(upgraded_url, tmp_path, previous, stack)


def test_F41_the_previous_release_and_this_one_work_side_by_side_through_a_migration(stage: Stage, previous: Release):
    old_web, old_worker = stage.web(previous), stage.worker(previous).ready()
    old_web.ready()
    stage.traffic.sites = [old_web.url]
    stage.traffic.start()
    stage.goes_on()
    THIS.baton("migrate", DATABASE_URL=stage.url)
    stage.goes_on()  # nothing was restarted: what the old processes had prepared is still good

    new_web, new_worker = stage.web(THIS), stage.worker(THIS).ready()
    new_web.ready()
    stage.traffic.sites = [old_web.url, new_web.url]
    _people_go_from_one_to_the_other(old_web, new_web)
    stage.goes_on(6)
    new_worker.says("job_completed")

    # What a process of one release left leased when it died, the other takes back.
    new_worker.kill()
    stage.worker(THIS, failpoints="acquire.after_commit=kill").died()
    stage.recovers(old_worker)
    stage.goes_on()
    survivor = stage.worker(THIS).ready()
    old_worker.kill()
    stage.worker(previous, failpoints="acquire.after_commit=kill").died()
    stage.recovers(survivor)
    stage.goes_on()
    for each in (old_worker, survivor):  # both were alone for a while: whoever sees work first has most of it
        assert each.lines("job_completed") and each.lines("delivery_completed"), each.log.name

    stage.traffic.stop()
    with connect(stage.url) as conn:
        eventually(lambda: conn.execute(OPEN).fetchone() == (0,), "every case and delivery to complete", seconds=60)
        wrong = problems(conn, stage.traffic, stage.receiver)
    assert not wrong, "\n".join(wrong[:20])
    for process in stage.logs:
        assert "Traceback" not in process.text(), f"{process.log.name}\n{process.text()[-3000:]}"
        assert "deadlock detected" not in process.text(), process.log.name


def _people_go_from_one_to_the_other(old: WebProcess, new: WebProcess) -> None:
    """A load balancer sends a browser now here, now there: its session and the tokens of its pages hold on both."""
    for first, second in ((old, new), (new, old)):
        with closing(Person(first.url, "ada", "first password")) as ada:
            page = ada.get("/inbox").text
            elsewhere = ada.get(f"{second.url}/operations")
            assert elsewhere.status_code == 200 and "Ada Moreno" in elsewhere.text
            left = ada.post(f"{second.url}/logout", data={"csrf_token": ada.token_in(page)})
            assert left.status_code == 303, left.text[:500]
            assert ada.get("/inbox").status_code in (302, 303), "left there, left here"


def test_F41_the_previous_release_leaves_alone_what_only_this_one_knows(stage: Stage, previous: Release):
    THIS.baton("migrate", DATABASE_URL=stage.url)
    known = {tuple(pair) for pair in previous.says("ENGINE_JOBS", "worker.main")}
    new = [tuple(pair) for pair in THIS.says("ENGINE_JOBS", "worker.lanes") if tuple(pair) not in known]
    with connect(stage.url) as conn:
        conn.execute("ALTER TABLE job DROP CONSTRAINT ck_job_kind")
        unknown = _jobs(conn, [*new, ("of_a_later_release", ""), ("service", "handler.of.a.later.release")])
        held = _jobs(conn, [("timer", "")], held=["a reason of a later release"])
        stage.worker(previous).ready()
        for _ in range(3):
            _the_worker_has_looked(conn)
        for job in (*unknown, *held):
            found = conn.execute("SELECT status, lease_number, attempts FROM job WHERE id = %s", (job,)).fetchone()
            assert found == ("available", 0, 0), f"{job}: expected it untouched, found {found}"


def _jobs(conn: psycopg.Connection, kinds: list[tuple[str, str]], *, held: list[str] | None = None) -> list[object]:
    return [rows.job(conn, kind=kind, topic=topic, held=held or []) for kind, topic in kinds]


def _the_worker_has_looked(conn: psycopg.Connection) -> None:
    (now,) = conn.execute("SELECT baton_clock()").fetchone() or (None,)
    eventually(lambda: conn.execute("SELECT 1 FROM worker WHERE last_acquired_at > %s", (now,)).fetchone(), "the worker to look for work")


# Its tests of the commands that write and read what both releases share. One that may differ now stands in DIFFER, with the reason.
COMMANDS = """acquire calls cancel complete_task deliver_message deliveries external_tasks jobs leases many_instances messages
    retry signals start tasks upkeep"""
DIFFER: dict[str, str] = {
    "tests/commands/test_signals.py::test_a_suspended_case_has_its_signal_when_it_goes_on": (
        "The job of a signal is written free and held by its delivery, under the root's lock: written held, a resumption could miss it."
        " The previous release's delivery hands it back for ten seconds at a time, until the case goes on."
    ),
}


def test_the_previous_release_passes_its_own_tests_of_commands_on_the_new_schema(previous: Release, template_url: str):
    files = [f"tests/commands/test_{name}.py" for name in COMMANDS.split()]
    left_out = [f"--deselect={test}" for test in DIFFER]
    told = {"BATON_TEST_SERVER": template_url, "BATON_TEST_TEMPLATE": template_url.rsplit("/", 1)[1]}
    said = previous.runs("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *left_out, *files, **told)
    assert int(said.split(" passed")[0].split()[-1]) > 150, said
