"""S68 with real processes: a worker, and a receiver that dies, hangs, redirects inward, answers nonsense, a gigabyte, for ever."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engine.commands.destinations import Wanted, add_destination
from engine.commands.outcome import DestinationSaved
from engine.webhooks import signing_secret
from tests.cast import OP
from tests.faults.webhook_receiver import INNER_SECRET
from tests.worker.models import chain, deployed, service, started
from tests.worker.processes import eventually, worker

pytestmark = [pytest.mark.faults, pytest.mark.slow]
Connection = psycopg.Connection[Any]

SECRET_KEY = "the key of the workers and web servers of this test"
BAD = ("dies", "hangs", "inward", "nearby", "nonsense", "gigabyte", "for_ever", "secret_answer")
MOODS = {  # customer -> how each of their deliveries goes the first time
    "ada": ("fine", *BAD, "fine"),
    "bo": ("fine", *reversed(BAD), "away", "fine"),
    "cy": ("fine",) * 5,
}
MODEL = chain(
    "orders",
    service(
        "tell",
        "http.deliver",
        {"url": "/${mood}/${customer}/${number}", "body": "${number}", "headers": "${headers}"},
        destinationName="hooks",
        orderingKey="${customer}",
    ),
)


class Receiver:
    """The receiver's process, started again by the test when it has died."""

    def __init__(self, folder: Path) -> None:
        self.log, self.port, self.stranger = folder / "received", _free_port(), _free_port()
        self.log.touch()
        self.secret, self.deaths = "", 0
        self._process: subprocess.Popen[bytes] | None = None

    def live(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            self.deaths += 1
            self._process = None
        if self._process is None:
            arguments = [str(self.port), str(self.stranger), self.secret, str(self.log)]
            self._process = subprocess.Popen([sys.executable, "-m", "tests.faults.webhook_receiver", *arguments])

    def lines(self) -> list[list[str]]:
        return [line.split(" ") for line in self.log.read_text().splitlines()]

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    made = Receiver(tmp_path)
    yield made
    made.stop()


def test_S68_each_id_arrives_in_order_nothing_leaks_and_the_worker_lives(
    committed_db: Connection, database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    address = f"http://127.0.0.1:{receiver.port}/hooks"
    wanted = Wanted("http", address, concurrency=2, retry="R20/PT0.3S", redirects=2, seconds=1.0, max_bytes=50_000)
    saved = add_destination(committed_db, "hooks", wanted, actor=OP)
    assert isinstance(saved, DestinationSaved)
    assert saved.salt
    receiver.secret = signing_secret(SECRET_KEY, saved.salt)
    receiver.live()
    deployed(committed_db, "orders", MODEL)
    for number in range(max(map(len, MOODS.values()))):
        for customer, moods in MOODS.items():
            if number < len(moods):
                headers = {"Authorization": "Bearer of the first alone", "X-Api-Key": "of the first alone"}
                started(committed_db, "orders", customer=customer, mood=moods[number], number=number, headers=headers)

    with worker(database_url, tmp_path, secret_key=SECRET_KEY, allowed_networks="127.0.0.1/32", delivery_slots="3") as process:

        def all_taken() -> bool:
            receiver.live()
            return committed_db.execute("SELECT count(*) FROM delivery WHERE status <> 'completed'").fetchone() == (0,)

        eventually(all_taken, "every delivery to be taken", seconds=120)
        assert process.terminate() == 0, "the worker lived, and ended when it was told to"
        said = process.text()

    assert receiver.deaths >= 2
    _each_arrived_in_order(committed_db, receiver)
    _nothing_leaked(committed_db, receiver, said, saved.salt)


def _each_arrived_in_order(conn: Connection, receiver: Receiver) -> None:
    arrived = [(key, path) for key, path, *more in receiver.lines() if not more]
    for customer, moods in MOODS.items():
        query = "SELECT id::text, attempts FROM delivery WHERE line = %s ORDER BY created_at, id"
        written = conn.execute(query, (customer,)).fetchall()
        mine = [key for key, path in arrived if path.split("/")[3] == customer]
        assert [key for key, _ in groupby(mine)] == [key for key, _ in written], f"{customer}: one after the other, none left out"
        assert all(mine.count(key) <= attempts for key, attempts in written)
        bad = [key for (key, _), mood in zip(written, moods, strict=True) if mood in BAD]
        assert all(mine.count(key) >= 2 for key in bad), f"{customer}: what went wrong came again under the same id"


def _nothing_leaked(conn: Connection, receiver: Receiver, said: str, salt: str) -> None:
    beside = [line for line in receiver.lines() if len(line) > 2]
    assert {path for _, path, _ in beside} == {"stranger/away"}, "nobody was led to localhost by another name for it"
    assert {meant for *_, meant in beside} == {""}, "no credentials and no signature to another port"
    kept = str(conn.execute("SELECT response, last_error FROM delivery").fetchall())
    kept += str(conn.execute("SELECT data FROM history WHERE kind LIKE 'delivery%'").fetchall())
    for text in (kept, said):
        for secret in (INNER_SECRET, salt, receiver.secret, "meta-data", "of the first alone"):
            assert secret not in text
    assert "169.254.169.254 is not a public address" in kept
