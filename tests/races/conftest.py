"""Any deadlock fails a race: commands are not run again here. The order of locks is watched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import failpoints
from engine.commands import transaction
from tests.lock_order import watched

__all__ = ["watched"]


@pytest.fixture(autouse=True)
def no_second_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "RUNS", 1)


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.install("")
