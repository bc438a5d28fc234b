"""`baton bench queue`: every figure is there, and what must come out comes out. Times are a matter of the bench, not of tests."""

from __future__ import annotations

from cli.bench.queued import QUICK, bench_queue, lines


def test_the_queue_bench_drains_with_one_worker_and_with_two_beside_the_yardstick(server_url: str) -> None:
    found = bench_queue(server_url, QUICK)
    assert [beside.workers for beside in found.drained] == [1, 2]
    for beside in found.drained:
        assert beside.yardstick_per_second > 0
        assert beside.ratio > 0
        for drained in beside.drains:
            assert drained.jobs == QUICK.jobs
            assert drained.commits >= 1, "each job is completed by a transaction of its own"
            assert drained.wal_bytes > 0
            assert drained.parent_kb > 0
            assert drained.children_kb > 0
    told = "\n".join(lines(found))
    assert "1 worker(s)" in told
    assert "2 worker(s)" in told
    assert "yardstick" in told
