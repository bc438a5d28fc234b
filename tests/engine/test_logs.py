"""Log lines: one outcome a line, whatever the values hold, and no storms."""

from __future__ import annotations

import io
import logging
import sys
from types import SimpleNamespace

from engine import logs
from engine.logs import LONGEST, Seldom, line


def test_a_line_is_one_line_of_key_and_value():
    assert line("job_failed", item=7, error='say "no"\nplease', gone=None, seconds=1.23456, last=True) == (
        'job_failed item=7 error="say \\"no\\"\\nplease" seconds=1.235 last=true'
    )


def test_a_long_value_is_cut():
    assert len(line("x", error="a" * 10_000)) < LONGEST + 20


def test_F28_equal_lines_are_kept_back_and_counted(caplog, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("engine.logs.time", SimpleNamespace(monotonic=lambda: now[0]))
    seldom = Seldom(logging.getLogger("baton.test"), seconds=10)
    with caplog.at_level(logging.WARNING):
        for number in range(1000):
            seldom.warning("database_unreachable", number=number)
        seldom.warning("database_back")
        now[0] = 10.0
        seldom.warning("database_unreachable", number=1000)
    assert [record.message for record in caplog.records] == [
        "database_unreachable number=0",
        "database_back",
        "database_unreachable number=1000 lines_kept_back=999",
    ]


def test_a_record_is_written_as_a_line_with_its_time_and_a_trace_below_it():
    formatted = logs._Lines(io.StringIO())
    record = logging.LogRecord("baton.worker", logging.INFO, "file", 1, "job_completed item=%s", (7,), None)
    record.created, record.msecs = 1_800_000_000.0425, 42.5
    assert formatted.format(record) == "2027-01-15T08:00:00.042Z INFO baton.worker job_completed item=7"
    try:
        raise LookupError("gone")
    except LookupError:
        record.exc_info = sys.exc_info()
    text = formatted.format(record).splitlines()
    assert text[1] == "Traceback (most recent call last):"
    assert text[-1] == "LookupError: gone"
