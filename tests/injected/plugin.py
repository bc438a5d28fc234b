"""A pytest plugin: commands meet faults while the tests run (`make injected`). Loaded by `-p tests.injected.plugin`, it reads

    BATON_INJECT        the seed; what a test meets depends on the seed and its name alone
    BATON_INJECT_KINDS  the kinds of faults, separated by commas; all of them if not given

A run in which one of its kinds never happened has failed: it has shown nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.injected.apart import reason
from tests.injected.asking import asking, injecting
from tests.injected.faults import KINDS, counts

_stack = ExitStack()


def kinds_of(text: str) -> frozenset[str]:
    """The kinds of BATON_INJECT_KINDS. Raises ValueError for one that there is not."""
    kinds = frozenset(text.split(",")) if text else frozenset(KINDS)
    if unknown := kinds - set(KINDS):
        raise ValueError(f"BATON_INJECT_KINDS: expected some of {', '.join(KINDS)}, found {', '.join(sorted(unknown))}")
    return kinds


def pytest_collection_finish() -> None:
    asking.seed, asking.kinds = int(os.environ.get("BATON_INJECT", "1")), kinds_of(os.environ.get("BATON_INJECT_KINDS", ""))
    _stack.enter_context(injecting())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    queues = "tests/races/" in item.nodeid or {"contest", "held_at", "Contender"} & set(vars(getattr(item, "module", None)))
    asking.begin(item.nodeid, off=reason(item.nodeid) is not None, first_only=bool(queues))
    return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    _stack.close()
    if session.exitstatus == pytest.ExitCode.OK and any(counts[kind] == 0 for kind in asking.kinds):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.section(f"faults injected under seed {asking.seed}")
    for kind in sorted(asking.kinds):
        terminalreporter.line(f"{counts[kind]:7} {kind}", red=counts[kind] == 0)
