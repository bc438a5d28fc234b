"""Tests that run without injected faults when all others run under them, each with its reason.

Whole folders are named with a slash at the end, files without, tests by `file::name`. They are part of the run all the same.
"""

COUNTS = "it counts calls or passages of fail-points, and a run that is repeated makes more of them"
CUTS = "it cuts connections or raises errors itself, and says what becomes of each"
REFUSALS = "it counts refusals, and one whose answer was lost is counted again; or request ids, and some are given besides"
SETS = "it changes a setting of its session, and another session has not got it"

APART: dict[str, str] = {
    "tests/commands/test_execute_counts.py": COUNTS,
    "tests/commands/test_four_calls.py": COUNTS,
    "tests/commands/test_decisions.py::test_a_step_with_decisions_costs_four_at_most_however_many_it_makes": COUNTS,
    "tests/commands/test_decisions.py::test_a_start_with_a_decision_costs_three": COUNTS,
    "tests/commands/test_start.py::test_a_process_that_was_started_before_is_started_without_a_look": COUNTS,
    "tests/db/test_lock_order.py::test_the_levels_of_some_commands": COUNTS,
    "tests/db/test_prepared.py::test_a_command_that_finds_it_gone_in_its_transaction_is_run_again": COUNTS,
    "tests/commands/test_jobs.py::test_R4_a_worker_that_lost_its_lease_cannot_finish_the_job": REFUSALS,
    "tests/scenarios_db/test_people.py::test_S20_twenty_completes_at_once_are_one_success_and_nineteen_refusals_of_one_reason": REFUSALS,
    "tests/commands/test_external_tasks.py::test_R5_tasks_that_were_leased_and_could_not_be_read_are_free_again_with_their_attempt": SETS,
    "tests/commands/test_transaction.py": CUTS,
    "tests/races/test_lost_connections.py": CUTS,
}


def reason(test: str) -> str | None:
    """Why this test (its node id) runs without faults; None: it does not."""
    return next((why for name, why in APART.items() if test.split("[")[0].startswith(name)), None)
