"""`baton bench queue`: every figure is there, and what must come out comes out. Times are a matter of the bench, not of tests."""

from __future__ import annotations

from cli.bench.queue_peers import measure
from cli.bench.queued import QUICK, bench_queue, lines


def test_the_queue_bench_finds_every_figure(server_url: str) -> None:
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
    assert [(peer.name, peer.workers) for peer in found.peers] == [(name, n) for name in ("procrastinate", "dbos") for n in (1, 2)]
    assert all(peer.missing or peer.jobs == QUICK.peer_jobs for peer in found.peers)
    assert found.latency is not None, "the server of the tests runs here"
    assert [waited.what for waited in found.latency.waited] == ["idle", "half load", "idle, a timer"]
    assert all(0 < waited.p50 <= waited.p95 <= waited.longest for waited in found.latency.waited)
    assert [case.wanted for case in found.acquisition] == [1.15, 1.3, 1.5, 1.5, 1.5, 1.5, None]
    assert all(case.buffers > 0 for case in found.acquisition)
    told = "\n".join(lines(found))
    for word in ("1 worker(s)", "2 worker(s)", "yardstick", "procrastinate", "dbos", "due to started, idle", "not yet due"):
        assert word in told


def test_where_another_product_is_not_installed_the_bench_says_how_to_get_it_and_goes_on(monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    peer = measure("postgresql://nowhere/x", "dbos", jobs=1, workers=2)
    assert peer.per_second is None
    assert peer.missing.startswith("dbos is not installed (make bench ARGS=queue installs it")
    assert "requirements/bench.txt" in peer.missing
