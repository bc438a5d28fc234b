"""The embedded PostgreSQL: started by anybody, found again after anything, and really stopped."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from cli import postgres_files
from cli.embedded import EmbeddedPostgres
from cli.postgres_files import EmbeddedServerError
from cli.processes import alive, working_in

ROOT = os.geteuid() == 0
HERE = Path(__file__).parents[2]
QUICK = {"fsync": "off", "shared_buffers": "16MB", "max_connections": "20", "shared_preload_libraries": ""}

START = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts this in the background has it ignored
from pathlib import Path
from cli.embedded import EmbeddedPostgres
server = EmbeddedPostgres.for_tests() if sys.argv[1] == "tests" else EmbeddedPostgres(Path(sys.argv[1]))
print(server.start(), server.pid(), server.home, flush=True)
sys.stdin.read()
if sys.argv[2:] == ["stop"]:
    server.stop()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder that every account may enter, unlike pytest's."""
    made = Path(tempfile.mkdtemp(prefix="baton-embedded-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    made = EmbeddedPostgres(folder / "home", settings=QUICK)
    yield made
    made.stop()


def starter(*arguments: str, **how: object) -> subprocess.Popen[str]:
    """A process that starts a server, prints its URL, pid and home, and waits for the end of its input."""
    command = [sys.executable, "-c", START, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE, env=environment, **how)


def until(true: Callable[[], bool], seconds: float = 15) -> bool:
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def test_a_started_server_keeps_what_was_committed_over_a_stop(server):
    with psycopg.connect(server.start(), autocommit=True) as conn:
        conn.execute("CREATE TABLE kept AS SELECT 1 AS n")
    port = server._port()
    server.stop()
    assert not server.accepting()
    assert not any(working_in(server.data))
    with psycopg.connect(server.start()) as conn:
        assert conn.execute("SELECT n FROM kept").fetchone() == (1,)
    assert server._port() == port


def test_data_survives_a_killed_server(server):
    with psycopg.connect(server.start(), autocommit=True) as conn:
        conn.execute("CREATE TABLE kept AS SELECT 1 AS n")
        server.kill()
    assert until(lambda: not server.lives())
    with psycopg.connect(server.start()) as conn:
        assert conn.execute("SELECT n FROM kept").fetchone() == (1,)


def test_for_the_person_who_tries_it_out_a_commit_is_on_the_disk_and_only_tests_save_that(folder):
    made = EmbeddedPostgres(folder / "home")
    quick = EmbeddedPostgres.for_tests()
    try:
        for each, expected in ((made, "on"), (quick, "off")):
            with psycopg.connect(each.start()) as conn:
                assert conn.execute("SHOW fsync").fetchone() == (expected,)
    finally:
        made.stop()
        quick.stop()
    assert not quick.home.exists()


def test_concurrent_starters_get_one_server(folder):
    started = [starter(str(folder / "home")) for _ in range(5)]
    try:
        said = {process.stdout.readline() for process in started}
        assert len(said) == 1
        assert said.pop().startswith("postgresql://baton:")
    finally:
        for process in started:
            process.communicate("")
        EmbeddedPostgres(folder / "home").stop()


def test_a_server_outlives_its_killed_parent_and_is_found_again(folder):
    parent = starter(str(folder / "home"))
    url, pid, _ = parent.stdout.readline().split()
    parent.kill()
    parent.communicate()
    again = EmbeddedPostgres(folder / "home")
    try:
        assert again.start() == url
        assert again.pid() == int(pid)
    finally:
        again.stop()
    assert until(lambda: not alive(int(pid)))


def test_a_server_for_tests_dies_with_its_killed_parent():
    parent = starter("tests")
    _, pid, home = parent.stdout.readline().split()
    assert alive(int(pid))
    parent.kill()
    parent.communicate()
    assert until(lambda: not alive(int(pid)))
    shutil.rmtree(home)


def test_another_port_is_taken_where_the_old_one_is_not_free(server):
    server.start()
    port = server._port()
    server.stop()
    with socket.create_server(("127.0.0.1", port)):
        server.start()
        assert server._port() != port
        assert server.accepting()


def test_an_interrupted_initdb_is_begun_again(server):
    (server.place / "data.new").mkdir()
    (server.place / "data.new" / "PG_VERSION").write_text("18\n")
    server.start()
    assert server.accepting()
    assert not (server.place / "data.new").exists()


def test_a_lock_file_that_names_a_strangers_process_does_not_keep_the_server_down(server):
    server.start()
    server.kill()
    assert until(lambda: not any(working_in(server.data)))
    how = {"user": server.account.pw_uid} if server.account else {}
    with subprocess.Popen(["sleep", "60"], cwd="/", **how) as stranger:
        lock = server.data / "postmaster.pid"
        lock.write_text(f"{stranger.pid}\n" + lock.read_text().partition("\n")[2])
        server.start()
        assert server.accepting()
        stranger.kill()


def test_what_the_server_says_is_shown_when_it_does_not_start(folder):
    broken = EmbeddedPostgres(folder / "home", settings={**QUICK, "max_connections": "none"})
    with pytest.raises(EmbeddedServerError, match="max_connections"):
        broken.start()


def test_without_the_package_the_message_names_the_way_out(folder, monkeypatch):
    monkeypatch.setattr(postgres_files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EmbeddedServerError, match="DATABASE_URL"):
        EmbeddedPostgres(folder / "home")


def test_an_interrupt_of_the_terminal_does_not_reach_the_server(folder):
    """Ctrl-C goes to the whole process group; the server is stopped by its parent, last."""
    parent = starter(str(folder / "home"), "stop", process_group=0)
    _, pid, _ = parent.stdout.readline().split()
    os.killpg(parent.pid, signal.SIGINT)
    parent.communicate()
    again = EmbeddedPostgres(folder / "home")
    assert again.pid() == int(pid)
    assert again.accepting()
    again.stop()


if ROOT:  # what only root meets

    def modes(*folders: Path) -> list[int]:
        return [folder.stat().st_mode & 0o7777 for folder in folders]

    def test_as_root_the_server_runs_as_an_account_that_was_there_before(server):
        before = Path("/etc/passwd").read_bytes()
        server.start()
        assert Path(f"/proc/{server.pid()}").stat().st_uid == server.account.pw_uid != 0
        assert Path("/etc/passwd").read_bytes() == before
        assert server.data.stat().st_mode & 0o077 == 0
        assert (server.home / "password").stat().st_mode & 0o077 == 0

    def test_as_root_a_private_home_stays_private_and_the_data_lies_elsewhere(folder, monkeypatch):
        private = folder / "root"
        private.mkdir(mode=0o700)
        shared = folder / "shared"
        monkeypatch.setattr(postgres_files, "SHARED", shared)
        made = EmbeddedPostgres(private / "home", settings=QUICK)
        try:
            made.start()
            assert made.data.is_relative_to(shared)
            assert modes(private) == [0o700]
            made.stop()
            private.chmod(0o755)  # opened later: the data must not seem to be lost
            again = EmbeddedPostgres(private / "home", settings=QUICK)
            assert again.data == made.data
        finally:
            made.stop()

    def test_as_root_programs_that_the_account_cannot_reach_are_copied_once(folder, monkeypatch):
        private = folder / "venv"
        private.mkdir(mode=0o700)
        package = postgres_files._package()
        for part in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(part, private / part.name, symlinks=True)
        monkeypatch.setattr(postgres_files, "SHARED", folder / "shared")
        monkeypatch.setattr(postgres_files, "_package", lambda: private / package.name)
        made = EmbeddedPostgres(folder / "home", settings=QUICK)
        try:
            assert made.programs.is_relative_to(folder / "shared")
            made.start()
            assert made.accepting()
            assert modes(private) == [0o700]
        finally:
            made.stop()
        copied = (made.programs / "postgres").stat().st_mtime_ns
        assert EmbeddedPostgres(folder / "home").programs == made.programs
        assert (made.programs / "postgres").stat().st_mtime_ns == copied

    def test_a_normal_user_needs_no_account_but_its_own(folder, monkeypatch):
        """In a forked child that has given root up: the interpreter of this run may lie where only root can read."""
        own, package = folder / "own", postgres_files._package()
        own.mkdir(mode=0o700)
        os.chown(own, 65534, 65534)
        for part in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(part, folder / part.name, symlinks=True)
        monkeypatch.setattr(postgres_files, "_package", lambda: folder / package.name)
        child = os.fork()
        if child == 0:
            os._exit(_as_a_normal_user(own / "home"))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (own / "home" / "data").stat().st_uid == 65534

    def _as_a_normal_user(home: Path) -> int:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            made = EmbeddedPostgres(home, settings=QUICK)
            assert made.account is None
            made.start()
            assert Path(f"/proc/{made.pid()}").stat().st_uid == 65534
            made.stop()
            assert not any(working_in(made.data))
        except BaseException:
            traceback.print_exc()
            return 1
        return 0

    def test_data_of_another_account_is_refused_by_name(folder):
        made = EmbeddedPostgres(folder / "home", settings=QUICK)
        made.start()
        made.stop()
        os.chown(made.data, 1, 1)
        with pytest.raises(EmbeddedServerError, match="belongs to user id 1"):
            made.start()
