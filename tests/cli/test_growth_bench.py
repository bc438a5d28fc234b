"""`baton bench growth`: every figure is there, and what must come out comes out. Times are a matter of the bench, not of tests."""

from __future__ import annotations

from cli.bench.growth import bench_growth
from engine.core.loops import BATCH


def test_the_growth_bench_takes_every_step_and_reads_the_same_for_a_small_and_a_large_activity(server_url: str) -> None:
    found = bench_growth(server_url, many=BATCH + 300, created=BATCH + 50, tokens=30, elements=200, wide=150)
    assert found.create_5000_steps == 2
    assert found.completion_rows_10000 == found.completion_rows_10
    assert found.completion_buffers_10000 <= 1.5 * found.completion_buffers_10
    assert found.tokens_1000_ended
    assert found.parse_2000_seconds > 0
    assert found.tree_3_deep_200_wide_instances == 1 + 2 * 150
    assert found.tree_leaf_commands_refused_at_once
    assert found.tree_rows_left == 0
