"""The wheel: built, installed into an empty environment elsewhere, it migrates, serves and works."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.architecture.sources import MADE
from tests.cli.processes import HERE, Person, clean_environment, free_port, until

pytestmark = pytest.mark.slow
SHIPPED = ("templates", "static", "migrations")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, so that the checkout is left alone."""
    source, out = tmp_path_factory.mktemp("source") / "baton", tmp_path_factory.mktemp("dist")
    _copy(HERE, source)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (built,) = out.glob("*.whl")
    return built


def _copy(source: Path, target: Path) -> None:
    from shutil import copytree, ignore_patterns

    copytree(source, target, ignore=ignore_patterns(*MADE, "*.egg-info", "tests"))


@pytest.fixture(scope="module")
def baton(wheel, tmp_path_factory) -> Path:
    """`baton` in an environment that holds the wheel; its dependencies are those of this one, which pins them."""
    home = tmp_path_factory.mktemp("elsewhere") / "env"
    venv.create(home, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    uv = Path(sys.executable).parent / "uv"
    install = [str(uv), "pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(home / "bin" / "python"), str(wheel)]
    subprocess.run(install, check=True, timeout=60)
    return home / "bin" / "baton"


def test_the_wheel_holds_every_file_that_is_not_python(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"engine/shipped/{path.relative_to(HERE)}" for folder in SHIPPED for path in (HERE / folder).rglob("*") if _counts(path)}
    for package in ("engine", "cli", "webapp", "worker"):
        wanted |= {str(path.relative_to(HERE)) for path in (HERE / package).rglob("*") if _counts(path)}
    assert wanted <= held
    tops = {name.split("/")[0] for name in held}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"engine", "webapp", "worker", "cli"}
    assert any(name.endswith("licenses/LICENSE") for name in held)


def _counts(path: Path) -> bool:
    return path.is_file() and not MADE.intersection(path.parts[len(HERE.parts) :])


@pytest.fixture(scope="module")
def client_alone(tmp_path_factory) -> Path:
    """A Python whose environment holds baton-client, and of everything else only what that asks for."""
    source, out, home = (tmp_path_factory.mktemp(name) for name in ("client", "client-dist", "client-env"))
    _copy(HERE / "client", source / "client")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source / "client")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (built,) = out.glob("*.whl")
    venv.create(home, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    for name in ("httpx", "httpcore", "h11", "anyio", "certifi", "idna", "typing_extensions.py"):  # what httpx needs, and no more
        (packages / name).symlink_to(Path(sysconfig.get_path("purelib")) / name)
    uv = Path(sys.executable).parent / "uv"
    install = [str(uv), "pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(home / "bin" / "python"), str(built)]
    subprocess.run(install, check=True, timeout=60)
    return home / "bin" / "python"


@contextmanager
def running(command: list[str], log: Path, **environment: str) -> Iterator[None]:
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=log.parent, env=clean_environment(**environment), stdout=output, stderr=output) as process,
    ):
        try:
            yield
            assert process.poll() is None, log.read_text()
        finally:
            process.terminate()
            process.wait(timeout=40)


def test_the_installed_wheel_migrates_serves_and_works_and_the_client_alone_asks_it(baton, client_alone, server_url, tmp_path):
    """Production as deploy/README.md has it, in a database that was empty before."""
    import psycopg

    name = f"baton_dist_{free_port()}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    try:
        _serve_and_work(baton, server_url.rsplit("/", 1)[0] + f"/{name}", tmp_path, client_alone)
    finally:
        with psycopg.connect(server_url, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _serve_and_work(baton: Path, database_url: str, folder: Path, client: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    told = {
        "DATABASE_URL": database_url,
        "BATON_ENV": "production",
        "BATON_SECRET_KEY": "k" * 40,
        "BATON_INSECURE_COOKIES": "on",
        "BATON_LISTEN": url.removeprefix("http://"),
    }

    def run(*arguments: str, typed: str = "") -> str:
        command = [str(baton), *arguments]
        done = subprocess.run(
            command, cwd=folder, env=clean_environment(**told), input=typed, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("migrate")
    run("user", "add", "ada", "--display-name", "Ada Moreno", "--role", "administrator", "--password-stdin", typed="first password\n")
    model = folder / "timer.bpmn"
    model.write_text(TIMER_THEN_TASK)
    assert run("deploy", str(model)) == "timer-then-task version 1\n"
    run("start", "timer-then-task", "--business-key", "W-1")
    with running([str(baton), "web"], folder / "web.log", **told), running([str(baton), "worker"], folder / "worker.log", **told):
        until(lambda: _ready(url), "the installed web answers")
        ada = Person(url, "ada", "first password")
        until(lambda: "Look at it" in ada.get("/inbox?view=all").text, "the installed worker fired the timer")
        stylesheet = next(part for part in ada.get("/inbox").text.split('"') if part.startswith("/static/app.css"))
        assert ada.get(stylesheet).status_code == 200
        key = run("key", "add", "ada", "--name", "a program").strip()
        asked = subprocess.run(
            [str(client), "-c", ASK, url, key], cwd=folder, env={}, capture_output=True, text=True, timeout=60, check=True
        )
        assert asked.stdout == "Look at it, W-1\nno engine inside\n"


ASK = """
import sys
from baton_client import AsyncWorker, Client, Worker
with Client(sys.argv[1], sys.argv[2]) as baton:
    print(*(f"{task.name}, {task.business_key}" for task in baton.every(baton.tasks)))
try:
    import engine
except ImportError:
    print("no engine inside")
"""


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


TIMER_THEN_TASK = """<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"
             id="d" targetNamespace="urn:baton:tests">
  <process id="timer-then-task" name="Timer, then task" isExecutable="true">
    <startEvent id="start"/>
    <sequenceFlow id="f1" sourceRef="start" targetRef="wait"/>
    <intermediateCatchEvent id="wait">
      <timerEventDefinition><timeDuration>PT0.2S</timeDuration></timerEventDefinition>
    </intermediateCatchEvent>
    <sequenceFlow id="f2" sourceRef="wait" targetRef="look"/>
    <userTask id="look" name="Look at it" camunda:candidateGroups="office"/>
    <sequenceFlow id="f3" sourceRef="look" targetRef="end"/>
    <endEvent id="end"/>
  </process>
</definitions>
"""
