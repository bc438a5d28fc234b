"""Exclusive work that waits costs neither acquisition nor the passing of a turn, however much of it there is (F21)."""

from __future__ import annotations

from cli.bench import plans
from engine.db.acquire import JOB
from engine.db.explain import explain
from engine.db.marks import move_watermarks
from tests.plans import crowd
from tests.plans.crowd import BRANCH, INSTANCE, NOW, Connection

FLOOR = 60


def test_F21_acquisition_and_passing_the_turn_cost_the_same_behind_a_crowd_that_waits_its_turn(committed_db: Connection) -> None:
    conn = committed_db
    crowd.without_vacuum(conn)
    crowd.a_case(conn)

    def measured(waiting: int) -> tuple[int, int]:
        crowd.empty(conn, "job")
        crowd.fill(
            conn,
            lambda: crowd.work_rows(conn, "job", waiting, at=NOW, more="exclusive, held", values="true, '{exclusive}'"),
            lambda: crowd.work_rows(conn, "job", 100, at=NOW),
        )
        move_watermarks(conn, JOB, [BRANCH["job"]], sweep=True)
        acquisition = plans.acquisition(conn, "job", [BRANCH["job"]])
        assert acquisition.rows == 10
        turn = explain(conn, "turn", f"SELECT baton_take_turn({INSTANCE})", {})
        return acquisition.buffers, turn.buffers

    few, many = measured(10), measured(crowd.ROWS)
    assert many[0] <= 1.5 * max(few[0], FLOOR)
    assert many[1] <= 1.5 * max(few[1], FLOOR)
    assert conn.execute("SELECT count(*) FROM job WHERE exclusive AND held = '{}'").fetchone() == (0,)  # explained, rolled back
