"""`baton bench polls`: every figure is there, and what must come out comes out. Times are a matter of the bench, not of tests."""

from __future__ import annotations

import pytest

from cli.bench.polls import bench_polls


@pytest.mark.slow
def test_the_bench_of_long_polls_reads_pages_beside_who_waits_without_a_thread_or_connection_for_each(server_url: str) -> None:
    found = bench_polls(server_url, waiters=100, seconds=3.0, rounds=1, readers=1)
    assert [window.waiting for window in found.windows] == [0, 100]
    assert all(window.pages > 0 and window.p95_ms >= window.p50_ms > 0 for window in found.windows)
    assert found.ratio == pytest.approx(found.beside_p95_ms / found.alone_p95_ms)
    assert found.threads < 90, "64 for requests and few of the server's own"
    assert found.connections <= 8
    assert found.tasks_done >= 1
