"""Any deadlock fails a race: commands are not run again here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import failpoints
from engine.commands import transaction


@pytest.fixture(autouse=True)
def no_second_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "RUNS", 1)


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.install("")
