"""A pytest plugin: a run in which a test was skipped, or expected to fail, has failed. `make test` and `make check` load it."""

from __future__ import annotations

from typing import Any

import pytest

_unrun: list[str] = []


@pytest.hookimpl
def pytest_runtest_logreport(report: Any) -> None:
    if report.skipped or hasattr(report, "wasxfail"):
        _unrun.append(report.nodeid)


@pytest.hookimpl
def pytest_collectreport(report: Any) -> None:
    if report.skipped:
        _unrun.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _unrun and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl
def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _unrun:
        terminalreporter.section("not run, which counts as failed", red=True)
        for name in _unrun:
            terminalreporter.line(name)
